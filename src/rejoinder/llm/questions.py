"""Ask questions: in the form that the server takes, and once more what cannot be read.

Not every server gives probabilities, or answers in a form that a schema describes. The first
question finds out: a server that refuses it (400, 422, 501) is asked with less. As a question may
also be refused because it is too long, a form counts as taken only when there is an answer; until
then a few others are tried. Which form it took is known from the cache the next time, so that a
second run asks nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from rejoinder.llm.asking import Asking, Telling
from rejoinder.llm.chat import Answer, Chat, Failure, Message, Result
from rejoinder.llm.errors import Unanswered
from rejoinder.llm.readable import Unreadable
from rejoinder.progress import part_of

T = TypeVar("T")

PROBES = 3
"""Questions that are tried to find out which form a server takes."""

_REFUSED = re.compile(r"the server said (?:400|422|501)\b")


@dataclass
class Cost:
    """What answers cost when they were asked for, also if they are from the cache now."""

    requests: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def add(self, answer: Answer) -> None:
        self.requests += 1
        self.tokens += answer.tokens or 0
        self.seconds += answer.seconds

    @classmethod
    def total(cls, costs: Iterable[Cost]) -> Cost:
        """Return what several costs are together."""
        each = list(costs)
        return cls(
            sum(cost.requests for cost in each),
            sum(cost.tokens for cost in each),
            math.fsum(cost.seconds for cost in each),
        )

    def to_dict(self) -> dict[str, float]:
        """Return the cost as it is written beside scores and answers."""
        return {
            "requests": self.requests,
            "tokens": self.tokens,
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """What was read for one question, or why nothing was."""

    read: T | None
    cost: Cost
    kind: str = ""
    """Why nothing was read, in words that many questions share."""
    reason: str = ""
    """The same with the text of the answer."""


@dataclass
class Server:
    """What the answers say about the model that gave them."""

    names: set[str] = field(default_factory=set)
    first: float | None = None
    """Time of the first answer, and of the last."""
    last: float | None = None
    asked_again: int = 0
    read_then: int = 0

    def add(self, answer: Answer) -> None:
        model = answer.model or ""
        if model.startswith(("/", "~", ".")) or "\\" in model:
            model = re.split(r"[/\\]", model)[-1]  # the path of a file says where, not what
        if name := " ".join(part for part in (model, answer.fingerprint) if part):
            self.names.add(name)
        if answer.time:
            self.first = answer.time if self.first is None else min(self.first, answer.time)
            self.last = answer.time if self.last is None else max(self.last, answer.time)

    @property
    def dates(self) -> str:
        """The dates of the first and the last answer (UTC)."""
        if self.first is None or self.last is None:
            return "never"
        first, last = (
            datetime.fromtimestamp(t, UTC).date().isoformat() for t in (self.first, self.last)
        )
        return first if first == last else f"{first}..{last}"


@dataclass(frozen=True)
class Query:
    """The messages of a question, and the number of its answer among several."""

    messages: tuple[Message, ...]
    again: str
    """What is said after an answer that cannot be read."""
    draw: int = 0


class Questioner:
    """Asks queries; remembers which form the server takes, and what it said.

    ``forms`` are the parameters of requests, those that ask for most first; ``who`` asks is named
    in messages about the cost.
    """

    def __init__(
        self, asking: Asking, who: str, *, length: int, forms: Sequence[Mapping[str, Any]]
    ) -> None:
        self._asking, self._who, self._length = asking, who, length
        self._forms = list(forms)
        self._form: int | None = None
        self.server = Server()

    def ask(
        self,
        queries: Sequence[Query],
        read: Callable[[Answer], T | Unreadable],
        telling: Telling,
    ) -> list[Outcome[T]]:
        """Return what is read in the answer to each query; one that cannot be read is asked for
        once more."""
        if not queries:
            return []
        probes = _probes(queries)
        self._choose_known_form(probes)
        chats = [self._chat(query) for query in queries]
        if (cost := self._asking.describe_cost(chats, self._who)) is not None:
            telling.message(cost)
        if self._choose_form(probes):
            chats = [self._chat(query) for query in queries]
        results = self._asking.asker.ask(chats, on_note=telling.note, on_progress=telling.progress)
        outcomes = [self._outcome(result, read, Cost()) for result in results]
        unread = [
            n
            for n, result in enumerate(results)
            if isinstance(result, Answer) and outcomes[n].reason
        ]
        if unread:
            repeated = [_again(queries[n], results[n]) for n in unread]
            chats = [self._chat(query) for query in repeated]
            progress = part_of(telling.progress, len(queries) - len(unread), len(queries))
            second = self._asking.asker.ask(chats, on_note=telling.note, on_progress=progress)
            for n, result in zip(unread, second, strict=True):
                outcome = self._outcome(result, read, outcomes[n].cost)
                self.server.asked_again += 1
                self.server.read_then += outcome.read is not None
                # the reason of a failure hides the text that could not be read
                if isinstance(result, Answer):
                    outcomes[n] = outcome
        return outcomes

    def _outcome(
        self, result: Result, read: Callable[[Answer], T | Unreadable], cost: Cost
    ) -> Outcome[T]:
        if isinstance(result, Failure):
            return Outcome(None, cost, result.reason, result.reason)
        self.server.add(result)
        cost.add(result)
        found = read(result)
        if isinstance(found, Unreadable):
            return Outcome(None, cost, found.kind, found.reason)
        return Outcome(found, cost)

    def _chat(self, query: Query) -> Chat:
        form = self._forms[self._form or 0]
        return self._asking.chat(query.messages, self._length, query.draw, **form)

    def _choose_known_form(self, probes: Sequence[Query]) -> None:
        """Take the form of answers that are in the cache."""
        if self._form is not None or len(self._forms) == 1:
            return
        for number in range(len(self._forms)):
            self._form = number
            if any(self._asking.is_known(self._chat(query)) for query in probes):
                return
        self._form = None

    def _choose_form(self, probes: Sequence[Query]) -> bool:
        """Find out which form the server takes; return whether it is another than the first.

        Another failure than a refusal says nothing about the form, nor does a question that is
        refused in every form: then the next one is tried.
        """
        if self._form is not None or len(self._forms) == 1:
            return False
        for place, query in enumerate(probes, 1):
            for number in range(len(self._forms)):
                self._form = number
                try:
                    (result,) = self._asking.asker.ask([self._chat(query)])
                except Unanswered:
                    if place == len(probes):
                        raise
                    break
                if isinstance(result, Answer):
                    return number > 0
                if not _REFUSED.match(result.reason):
                    break
        self._form = None
        return False


def _probes(queries: Sequence[Query]) -> list[Query]:
    """Return a few different questions, from the first to the last."""
    by_messages: dict[tuple[Message, ...], Query] = {}
    for query in queries:
        by_messages.setdefault(query.messages, query)
    different = list(by_messages.values())
    places = {n * (len(different) - 1) // (PROBES - 1) for n in range(PROBES)}
    return [different[place] for place in sorted(places)]


def schema_form(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that ask a server to answer by a JSON schema."""
    described = {"name": name, "strict": True, "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": described}}


def _again(query: Query, result: Result) -> Query:
    """Return the query that asks once more; the answer is repeated in it if it has text."""
    *before, last = query.messages
    said = (result.text or result.refusal or "").strip() if isinstance(result, Answer) else ""
    if said:
        ending = [last, Message("assistant", said), Message("user", query.again)]
    else:
        ending = [Message(last.role, f"{last.content}\n\n{query.again}")]
    return replace(query, messages=(*before, *ending))
