"""A conversation with a bot: what was said, what it remembers, and how much work it may do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from rejoinder.systems.aiml.normalise import Words, sentences_of, words_of
from rejoinder.systems.aiml.parsing import Content, Rule
from rejoinder.systems.aiml.rules import RuleSet
from rejoinder.systems.aiml.templates import Frame, evaluate

NO_MATCH = "no rule matches"
EMPTY = "the rule has an empty reply"
HISTORY = 10
"""Inputs and replies that <input>, <that> and others can refer to, as in python-aiml."""
MAX_CALLS = 100
"""Rules that call one another with <srai>, as in python-aiml."""
MAX_LEVELS = 400
"""Elements inside elements, through all rules that call one another."""
MAX_STEPS = 200_000
"""Steps of matching and elements of templates for all inputs of a conversation."""
MAX_LENGTH = 20_000
"""Characters of a text that a rule makes."""

_NOTHING = Words("", ["<none>"], [])
"""Stands for no reply yet and for no topic: only a wildcard matches it."""


class LimitReached(Exception):
    """A rule wants more than it may have; the message says what."""


@dataclass
class Session:
    """The state of one conversation."""

    rules: RuleSet
    choose: Callable[[int], int] = lambda count: 0
    """Chooses one of so many alternatives of <random>."""
    clock: Callable[[], datetime] = datetime.now
    may_learn: bool = False
    predicates: dict[str, str] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    refused: dict[str, None] = field(default_factory=dict)
    """Tags of elements that were not carried out, such as system."""
    learned: list[tuple[Rule, Rule | None]] = field(default_factory=list)
    """Rules that <learn> added, and those that they replace."""
    steps: int = 0
    levels: int = 0
    calls: int = 0

    def respond(self, text: str) -> tuple[str, str | None]:
        """Reply to an input, sentence by sentence, or return '' and the reason."""
        replies: list[str] = []
        reason: str | None = None
        for sentence in sentences_of(text):
            _remember(self.inputs, [sentence])
            reply, why = self._attempt(partial(self.answer, sentence))
            _remember(self.outputs, [reply])
            if reply:
                replies.append(reply)
            reason = reason or why
        return (" ".join(replies), None) if replies else ("", reason or NO_MATCH)

    def reply_of(self, template: Content, frame: Frame) -> tuple[str, str | None]:
        """Return the reply of a template, or '' and the reason."""
        return self._attempt(partial(self.follow, template, frame))

    def play(self, text: str, reply: str) -> None:
        """Take an earlier input and what was replied to it then."""
        before = len(self.outputs)
        if text:
            self.respond(text)
        del self.outputs[before:]
        _remember(self.outputs, sentences_of(reply))

    def answer(self, text: str) -> str | None:
        """Return the reply of the rule that matches; None if none does."""
        words = words_of(text)
        if not words.words:
            return None
        that = words_of(self.outputs[-1]) if self.outputs else _NOTHING
        topic = words_of(self.predicates.get("topic", ""))
        that, topic = (each if each.words else _NOTHING for each in (that, topic))
        match = self.rules.graph.match(words.words, that.words, topic.words, self.spend)
        if match is None:
            return None
        frame = Frame(
            [words.span(*place) for place in match.star],
            [that.span(*place) for place in match.thatstar],
            [topic.span(*place) for place in match.topicstar],
        )
        return self.follow(match.rule.template, frame)

    def follow(self, template: Content, frame: Frame) -> str:
        """Return the text of a template."""
        return " ".join(evaluate(template, self, frame).split())

    def call(self, text: str) -> str:
        """Return the reply to the text of an <srai>."""
        if self.calls >= MAX_CALLS:
            raise LimitReached(f"its rules call one another more than {MAX_CALLS} deep")
        self.calls += 1
        reply = self.answer(text)
        self.calls -= 1
        return reply or ""

    def spend(self, steps: int) -> None:
        """Count work; too much of it ends the reply."""
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise LimitReached(f"its rules need more than {MAX_STEPS:,} steps")

    def check_length(self, length: int) -> None:
        """End the reply if a text becomes too long."""
        if length > MAX_LENGTH:
            raise LimitReached(f"its rules make a text of more than {MAX_LENGTH:,} characters")

    def enter(self) -> None:
        """Count an element inside others."""
        self.levels += 1
        if self.levels > MAX_LEVELS:
            raise LimitReached(f"its rules are nested more than {MAX_LEVELS} deep")

    def learn(self, rule: Rule) -> None:
        """Add a rule for the rest of this conversation."""
        self.learned.append((rule, self.rules.graph.add(rule)))

    def forget(self) -> None:
        """Take back what was learned: the next conversation begins with the rules alone."""
        while self.learned:
            rule, replaced = self.learned.pop()
            if replaced is None:
                self.rules.graph.remove(rule)
            else:
                self.rules.graph.add(replaced)

    def _attempt(self, action: Callable[[], str | None]) -> tuple[str, str | None]:
        """Return the reply that an action makes, or '' and the reason why there is none."""
        self.levels = self.calls = 0
        self.refused.clear()
        try:
            reply = action()
        except LimitReached as limit:
            return "", str(limit)
        if reply:
            return reply, None
        if reply is None:
            return "", NO_MATCH
        if not self.refused:
            return "", EMPTY
        tags = ", ".join(f"<{tag}>" for tag in sorted(self.refused))
        return "", f"the rule asks for {tags}, which is not carried out"


def _remember(history: list[str], texts: Iterable[str]) -> None:
    history += texts
    del history[:-HISTORY]
