"""``llm``: a language model writes several different replies to a context, as references.

All replies to a context are asked for in one request: a model that sees what it has written varies
it more than one that is asked again and again. Near-duplicates are left out, and what is missing is
asked for in further turns, up to ``tries`` requests. The model sees the context alone, neither the
reply that is evaluated nor other references. It is asked in the language of the context.

>>> str(LlmWriter(url="http://localhost:8000/v1", model="qwen3", concurrency=8))
'llm(url=http://localhost:8000/v1,model=qwen3)'
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import PurePath
from typing import Any, ClassVar

from rejoinder.items import WRITTEN
from rejoinder.llm.asking import Asking, Telling
from rejoinder.llm.budget import estimate_text
from rejoinder.llm.chat import Message
from rejoinder.llm.questions import Cost, Query, Questioner, schema_form
from rejoinder.llm.texts import context_text
from rejoinder.retrieve.written.prompts import PROMPTS, Prompts
from rejoinder.retrieve.written.replies import REPLIES, SCHEMA, read_replies
from rejoinder.spec import Spec, check_types, spec_of
from rejoinder.text.identify import find_other_language
from rejoinder.text.repeats import Texts

DEFAULT_K = 8
AUTO = "auto"
TOKENS_PER_REPLY = 48
MAX_TRIES = 20
MAX_LENGTH = 1000
"""Characters of a reply; longer ones are left out."""
NO_CONTEXT = "no context"
NO_REPLIES = "the answers have no replies"


@dataclass(frozen=True)
class Written:
    """The replies that were written to one context."""

    texts: list[str] = field(default_factory=list)
    cost: Cost = field(default_factory=Cost)
    kind: str = ""
    """Why there are none, in words that many contexts share."""
    reason: str = ""
    """The same with the text of the answer."""
    repeated: int = 0
    """Replies that were left out because they nearly repeat another one, or the context."""
    foreign: int = 0
    """Replies that were left out because they are in another language."""
    long: int = 0
    """Replies that were left out because they are longer than 1,000 characters."""


@dataclass(frozen=True, kw_only=True)
class LlmWriter(Asking):
    """Writes references with a language model."""

    name: ClassVar[str] = "llm"
    kind: ClassVar[str] = "writer of references"
    summary: ClassVar[str] = "a language model writes several different replies to the context"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "language model"})

    language: str = AUTO
    """Of the question: en, ja or zh; auto: that of the context, English for other ones."""
    near: float = 0.8
    """Similarity (share of character bigrams) from which on a reply repeats another one."""
    tries: int = 3
    """Requests for one context, with those for replies that are missing."""

    def __post_init__(self) -> None:
        check_types(self, self.name)
        problems = []
        if not 0 < self.near <= 1:
            problems.append(f"near={self.near:g} is not above 0 and up to 1")
        if not 1 <= self.tries <= MAX_TRIES:
            problems.append(f"tries={self.tries} is not from 1 to {MAX_TRIES}")
        if self.language not in (AUTO, *PROMPTS):
            problems.append(f"language={self.language} is not one of {AUTO}, {', '.join(PROMPTS)}")
        self.check_asking(self.name, str(self), problems)

    def __str__(self) -> str:
        """Return the spec without what changes no reply."""
        spec = spec_of(self, self.name)
        decides = {each.name for each in fields(self) if each.compare}
        return str(Spec(spec.name, tuple(p for p in spec.params if p[0] in decides)))

    @property
    def effective_temperature(self) -> float:
        """None: 1, as replies should differ."""
        return 1.0 if self.temperature is None else self.temperature

    @property
    def source(self) -> str:
        """What stands in the field ``source`` of its references."""
        return f"{WRITTEN}:{PurePath(self.model or 'none').name}"

    @cached_property
    def prompts(self) -> Prompts:
        return PROMPTS["en" if self.language == AUTO else self.language]

    def in_language(self, code: str | None) -> LlmWriter:
        """Return the writer that asks in a language, if it has words for it and none is set."""
        if self.language != AUTO:
            return self
        return replace(self, language=code if code in PROMPTS else "en")

    def forms(self) -> list[dict[str, Any]]:
        """Return the ways in which the model may be asked, the best first."""
        if not self.structured or self.url is None:
            return [{}]
        return [schema_form(REPLIES, SCHEMA), {}]

    def write(
        self,
        contexts: Sequence[Sequence[str]],
        k: int,
        telling: Telling,
        languages: Sequence[str | None],
    ) -> tuple[list[Written], list[str]]:
        """Return ``k`` replies to each context, and what readers should know.

        Replies in another language than that of the context are left out, if it is known.
        """
        questioner = Questioner(self, self.name, length=TOKENS_PER_REPLY * k, forms=self.forms())
        writers = {language: self.in_language(language) for language in set(languages)}
        asked = [
            _Asked(writers[language], context, k, language)
            for context, language in zip(contexts, languages, strict=True)
        ]
        for number in range(self.tries):
            open_ones = [each for each in asked if each.is_open]
            if not open_ones:
                break
            outcomes = questioner.ask(
                # with the same draw, a question that did not change would get the same answer
                [Query(each.messages(), each.again, number) for each in open_ones],
                read_replies,
                telling if not number else replace(telling, progress=None),
            )
            for each, outcome in zip(open_ones, outcomes, strict=True):
                each.cost = Cost.total((each.cost, outcome.cost))
                if outcome.read is None:
                    each.stopped = outcome.kind, outcome.reason
                else:
                    each.add(outcome.read)
        return [each.written() for each in asked], self._notes(asked)

    def _notes(self, asked: Sequence[_Asked]) -> list[str]:
        notes = []
        if cut := sum(each.cut for each in asked):
            notes.append(
                f"{cut:,} contexts are longer than window={self.window}: their beginning was left"
                " out"
            )
        return notes


class _Asked:
    """One context, and the replies to it so far."""

    def __init__(
        self, writer: LlmWriter, context: Sequence[str], k: int, language: str | None
    ) -> None:
        self._writer, self._k = writer, k
        self._languages = None if language is None else [language]
        self._last_turn = context[-1] if context else ""
        prompts = writer.prompts
        rest = estimate_text(prompts.system + prompts.question)
        turns, self.cut = writer.fit_context(context, rest)
        question = prompts.fill("question", k, context_text(turns, "tags"))
        self._question = (Message("system", prompts.system), Message("user", question))
        self.again = prompts.fill("again", k)
        self.texts: list[str] = []
        self._repeats: list[str] = []
        """Near-duplicates of the last answer, if it had nothing else."""
        self.cost = Cost()
        self.stopped = ("", "")
        self._repeated = self._foreign = self._long = 0
        if not any(map(str.strip, context)):
            self.stopped = NO_CONTEXT, NO_CONTEXT

    @property
    def is_open(self) -> bool:
        """Whether replies are missing that may still be asked for."""
        return len(self.texts) < self._k and not self.stopped[0]

    def messages(self) -> tuple[Message, ...]:
        shown = [*self.texts, *self._repeats]
        if not shown:
            return self._question
        missing = self._k - len(self.texts)
        return (
            *self._question,
            Message("assistant", json.dumps({REPLIES: shown}, ensure_ascii=False)),
            Message("user", self._writer.prompts.fill("more", missing)),
        )

    def add(self, replies: Sequence[str]) -> None:
        """Keep those that nearly repeat neither the last turn nor another one."""
        near, before = self._writer.near, len(self.texts)
        self._repeats = []
        for reply in replies:
            if len(self.texts) == self._k:
                break
            if len(reply) > MAX_LENGTH:
                self._long += 1
            elif find_other_language([reply], self._languages) is not None:
                self._foreign += 1
            elif (Texts([self._last_turn, *self.texts]).similarities(reply, near) >= near).any():
                self._repeated += 1
                self._repeats.append(reply)
            else:
                self.texts.append(reply)
        if len(self.texts) > before:
            self._repeats = []

    def written(self) -> Written:
        kind, reason = self.stopped
        if self.texts:
            kind = reason = ""
        elif not kind:
            kind = reason = self._left_out()
        return Written(
            self.texts, self.cost, kind, reason, self._repeated, self._foreign, self._long
        )

    def _left_out(self) -> str:
        """Return why no reply was kept."""
        why = {
            "near-duplicates": self._repeated,
            "in another language": self._foreign,
            f"longer than {MAX_LENGTH:,} characters": self._long,
        }
        given = [reason for reason, count in why.items() if count]
        return f"all replies were {' or '.join(given)}" if given else NO_REPLIES
