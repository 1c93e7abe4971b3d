"""``aiml``: a bot that follows rules written in AIML.

Two ways to find the rule: ``match=standard``, the matching of AIML, and ``match=cosine``, the most
similar pattern (:mod:`rejoinder.systems.aiml.cosine`). The turns of a context are a conversation:
the last one is the input, the one before it was said by the bot, the one before that is an earlier
input, and so on. Earlier inputs are answered, too, so that the bot learns a name or a topic from
them; then what was really replied takes the place of its own reply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import ClassVar

from rejoinder.registry import TOKENIZERS
from rejoinder.spec import Spec
from rejoinder.systems.aiml.cosine import PatternIndex, plain_words
from rejoinder.systems.aiml.rules import RuleSet, load, locate
from rejoinder.systems.aiml.session import Session
from rejoinder.systems.aiml.templates import Frame
from rejoinder.systems.controls import TRIES, Seeded
from rejoinder.systems.system import Replies, Request, context_rng, distinct

NOTHING_SIMILAR = "no pattern shares a word with the input"
WAYS = ("standard", "cosine")


@dataclass(frozen=True, kw_only=True)
class Aiml(Seeded):
    """Replies by the AIML rules of a folder, or of python-aiml (``alice``, ``standard``)."""

    name: ClassVar[str] = "aiml"
    summary: ClassVar[str] = "the reply of a rule written in AIML"
    needs_pool: ClassVar[bool] = False

    rules: str
    match: str = "standard"
    tok: Spec | None = None
    """Tokenizer for match=cosine; without it, words as in the standard matching."""
    learn: bool = False
    """Whether <learn> may add rules for the rest of a conversation; files are never read."""
    skip_broken: bool = False
    """Whether files that are not XML are left out and counted."""
    date: str | None = None
    """What <date> says, as 2026-01-31T12:00; by default the clock."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.match not in WAYS:
            raise ValueError(f"match={self.match} is not one of {', '.join(WAYS)}")
        if self.tok is not None and self.match != "cosine":
            raise ValueError("tok is the tokenizer of match=cosine; leave it out")
        if self.tok is not None:
            TOKENIZERS.make(self.tok)
        self._clock()
        locate(self.rules)

    def answer(self, contexts: Sequence[Sequence[str]], request: Request) -> list[Replies]:
        rules = load(self.rules, skip_broken=self.skip_broken, on_note=request.note)
        index = None
        if self.match == "cosine":
            tokenize = plain_words if self.tok is None else TOKENIZERS.make(self.tok).tokenize
            index = PatternIndex(rules.rules, tokenize)
        replies = []
        for number, context in enumerate(contexts, 1):
            replies.append(self._reply(context, request.n, rules, index))
            if request.on_progress is not None and (number % 100 == 0 or number == len(contexts)):
                request.on_progress(number, len(contexts))
        return replies

    def _reply(
        self, context: Sequence[str], n: int, rules: RuleSet, index: PatternIndex | None
    ) -> Replies:
        """Return up to n replies: where a rule draws at random, it is asked again."""
        rng = context_rng(self.seed, context)
        reasons: list[str] = []
        draws = 0

        def choose(count: int) -> int:
            nonlocal draws
            draws += 1
            return int(rng.integers(count))

        def candidates() -> Iterator[str]:
            for _ in range(1 if n == 1 else TRIES * n):
                session = Session(rules, choose, self._clock(), self.learn)
                try:
                    _play(session, context[:-1])
                    for text, reason in _respond(session, context[-1], index, n):
                        if reason is not None:
                            reasons.append(reason)
                        yield text
                finally:
                    session.forget()
                if not draws or index is not None:
                    break

        texts = distinct(candidates(), n)
        return Replies(texts) if texts else Replies(reason=reasons[0])

    def _clock(self) -> Callable[[], datetime]:
        if self.date is None:
            return datetime.now
        try:
            fixed = datetime.fromisoformat(self.date)
        except ValueError:
            raise ValueError(f"date={self.date} is not a date as 2026-01-31T12:00") from None
        return lambda: fixed


def _play(session: Session, turns: Sequence[str]) -> None:
    """Play the turns before the input: the last of them was said by the bot."""
    if len(turns) % 2:
        turns = ["", *turns]
    for text, reply in zip(turns[::2], turns[1::2], strict=True):
        session.play(text, reply)


def _respond(
    session: Session, text: str, index: PatternIndex | None, n: int
) -> Iterator[tuple[str, str | None]]:
    """Yield replies to an input, or '' and the reason."""
    if index is None:
        yield session.respond(text)
        return
    words = index.words(text)
    found = False
    for rule, _ in islice(index.best(words), TRIES * n):
        found = True
        pattern = set(rule.pattern)
        # what wildcards stand for is not known here: the words that the pattern does not have
        rest = " ".join(word for word in words if word.upper() not in pattern)
        yield session.reply_of(rule.template, Frame([rest], [], []))
    if not found:
        yield "", NOTHING_SIMILAR
