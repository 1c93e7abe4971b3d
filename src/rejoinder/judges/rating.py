"""Rate replies by a rubric: the question for each item, and what the answers say together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rejoinder.items import Item
from rejoinder.judges.asking import JudgeSettings
from rejoinder.judges.reading import ONLY, Reading, read
from rejoinder.judges.rubric import AGAIN, QUESTION, SYSTEM, WITH_REFERENCES, Rubric
from rejoinder.llm.asking import Telling
from rejoinder.llm.budget import estimate_text
from rejoinder.llm.chat import Message
from rejoinder.llm.questions import Cost, Outcome, Query, Questioner, Server
from rejoinder.llm.texts import context_text, delimited, references_text

MAX_REFERENCES = 5
"""References that are shown, those with the highest weight."""
LENGTH_PER_NUMBER = 24
"""Tokens of an answer for each of its numbers."""


@dataclass(frozen=True)
class Verdict:
    """What a judge says of one reply."""

    values: dict[str, float]
    """By dimension, the mean over its answers; empty if none could be read."""
    value: float
    """Mean over dimensions and answers; NaN if none could be read."""
    spread: float
    """Standard deviation of the answers (n - 1); 0 if there is one."""
    answers: int
    """Answers that could be read."""
    mass: float | None
    """Share of the probability that the numbers of the scale had, on average; None without
    probabilities."""
    cost: Cost
    kind: str = ""
    reason: str = ""
    """Why there is no value."""


class Rater:
    """One judge with one rubric."""

    def __init__(self, asking: JudgeSettings, rubric: Rubric) -> None:
        self._asking, self.rubric = asking, rubric
        length = LENGTH_PER_NUMBER * max(1, len(rubric.dimensions))
        self._questioner = Questioner(
            asking, asking.name, length=length, forms=asking.forms(_schema(rubric))
        )
        self.cut = self.lost = self.without_probabilities = self.read = 0

    @property
    def server(self) -> Server:
        """What the answers say about the model."""
        return self._questioner.server

    def rate(self, items: Sequence[Item], telling: Telling) -> list[Verdict]:
        """Rate the replies of items."""
        n = self._asking.n
        questions = [self._messages(item) for item in items]
        again = self.rubric.fill(AGAIN, {})
        queries = [Query(messages, again, draw) for messages in questions for draw in range(n)]
        outcomes = self._questioner.ask(
            queries,
            lambda answer: read(answer, self.rubric.scale, self.rubric.dimensions),
            telling,
        )
        return [self._verdict(outcomes[i * n : (i + 1) * n]) for i in range(len(items))]

    def shows_references(self, item: Item) -> bool:
        """Return whether the question about an item has references."""
        wanted = self._asking.references
        return bool(wanted) and self.rubric.takes_references and bool(usable_references(item))

    def _messages(self, item: Item) -> tuple[Message, ...]:
        rubric = self.rubric
        section = WITH_REFERENCES if self.shows_references(item) else QUESTION
        texts = {"reply": delimited(item.response, "reply", rubric.delimiters)}
        if section == WITH_REFERENCES:
            texts["references"] = references_text(usable_references(item), rubric.delimiters)
        else:
            texts["references"] = ""
        messages, cut = question(self._asking, rubric, section, item.context, texts)
        self.cut += cut
        return messages

    def _verdict(self, outcomes: Sequence[Outcome[Reading]]) -> Verdict:
        cost = Cost.total(each.cost for each in outcomes)
        readings = [each.read for each in outcomes if each.read is not None]
        if not readings:
            first = outcomes[0]
            return Verdict({}, math.nan, 0.0, 0, None, cost, first.kind, first.reason)
        self.lost += len(outcomes) - len(readings)
        self.read += len(readings)
        names = self.rubric.dimensions or (ONLY,)
        values = {name: mean_of([each.values[name] for each in readings]) for name in names}
        overall = [mean_of(list(each.values.values())) for each in readings]
        masses = [each.mass for each in readings if each.mass is not None]
        self.without_probabilities += len(readings) - len(masses)
        return Verdict(
            values,
            mean_of(list(values.values())),
            _deviation(overall),
            len(readings),
            mean_of(masses) if masses else None,
            cost,
        )

    def notes(self) -> list[str]:
        """Return what readers of the scores should know."""
        scale = self.rubric.scale
        notes = notes_of(self.server, self._asking.window, cut=self.cut, lost=self.lost)
        if self.without_probabilities and self._asking.n == 1 and self._asking.logprobs:
            why = "the server gave no probabilities for"
            if not scale.is_told_by_one_token:
                why = f"numbers from {scale} begin alike, so no probabilities were read in"
            notes.append(
                f"{why} {self.without_probabilities:,} of {self.read:,} answers: these scores are"
                " the number that was written; n=5 averages several answers"
            )
        return notes


def notes_of(server: Server, window: int, *, cut: int, lost: int) -> list[str]:
    """Return what readers of the answers of any judge should know."""
    notes = []
    if cut:
        notes.append(
            f"{cut:,} contexts are longer than window={window}: their beginning was left out"
        )
    if server.asked_again:
        notes.append(
            f"{server.asked_again:,} answers could not be read and were asked for again;"
            f" {server.read_then:,} could be read then"
        )
    if lost:
        notes.append(f"{lost:,} of several answers to a question are missing")
    return notes


def question(
    asking: JudgeSettings,
    rubric: Rubric,
    section: str,
    context: Sequence[str],
    texts: Mapping[str, str],
) -> tuple[tuple[Message, ...], bool]:
    """Return a question with as much of the context as fits, and whether some was left out."""
    system = [Message("system", rubric.fill(SYSTEM, {}))] if rubric.sections.get(SYSTEM) else []
    empty = rubric.fill(section, {"context": "", **texts})
    rest = estimate_text(empty) + sum(estimate_text(each.content) for each in system)
    turns, cut = asking.fit_context(context, rest)
    filled = {"context": context_text(turns, rubric.delimiters), **texts}
    return (*system, Message("user", rubric.fill(section, filled))), cut


def usable_references(item: Item) -> list[str]:
    """Return the best references of an item that have text and no bad weight."""
    good = [
        each
        for each in item.references
        if each.text.strip() and (each.weight is None or each.weight > 0)
    ]
    good.sort(key=lambda each: 1.0 if each.weight is None else each.weight, reverse=True)
    return [each.text for each in good[:MAX_REFERENCES]]


def _schema(rubric: Rubric) -> dict[str, Any]:
    """Return the JSON schema of an answer."""
    names = list(rubric.dimensions or (ONLY,))
    number = {"type": "integer", "enum": list(rubric.scale.labels.values())}
    return {
        "type": "object",
        "properties": dict.fromkeys(names, number),
        "required": names,
        "additionalProperties": False,
    }


def mean_of(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _deviation(values: Sequence[float]) -> float:
    if len(values) < 2:
        return 0.0
    mean = mean_of(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
