"""Reading and checking of answers to "which of these two replies is better?".

    {"context_id": "7", "a": "7:human", "b": "7:hred", "winner": "a", "annotator": "ann"}

Only replies to one context are compared. A named annotator has one vote per pair: two answers of
one annotator to one pair have half a vote each, so that contradicting answers cancel out. Answers
without an annotator count one vote each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.files.jsonl import JsonLines
from rejoinder.items import Item
from rejoinder.spec import did_you_mean

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

UNNAMED = -1
"""Annotator number of an answer without a name."""

PROGRESS_STEP = 10_000
"""Answers between two progress reports."""

MAX_SUGGESTIONS = 10_000
"""With more candidates no similar id is suggested: the search would take seconds."""

OUTCOMES = {"a": 1.0, "b": 0.0, "tie": 0.5}


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer about two replies to one context."""

    a: str
    b: str
    winner: Literal["a", "b", "tie"]
    context_id: str | None = None
    annotator: str | None = None


@dataclass(frozen=True)
class Contest:
    """The replies to one context and the matrix of their wins."""

    name: str
    """Id of the context, or of its first candidate."""
    members: Ints
    """[n] numbers of the replies among all candidates."""
    wins: Floats
    """[n, n] votes for the reply of the row against that of the column; a tie is half a vote for
    each."""

    @property
    def games(self) -> Floats:
        """[n, n] number of votes on each pair."""
        return self.wins + self.wins.T


@dataclass(frozen=True)
class Comparisons:
    """All answers about a set of candidates, as columns.

    ``first`` and ``second`` are numbers of candidates, ``first`` < ``second``.
    """

    candidates: Sequence[Item]
    first: Ints
    second: Ints
    outcome: Floats
    """1 if the first was preferred, 0 if the second, 0.5 for a tie."""
    weight: Floats
    """Votes that the answer counts for."""
    annotator: Ints
    annotators: list[str]
    repeated: int = 0
    """Answers that repeat an earlier answer of their annotator to the same pair."""
    contradicting: int = 0
    """Answers that contradict an earlier answer of their annotator to the same pair."""

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def contexts(self) -> dict[str, Ints]:
        """Numbers of the candidates of each context."""
        return by_context(self.candidates)

    @cached_property
    def context(self) -> Ints:
        """[candidates] number of the context."""
        numbers = np.zeros(len(self.candidates), np.int64)
        for number, members in enumerate(self.contexts.values()):
            numbers[members] = number
        return numbers

    def contests(self) -> Iterator[Contest]:
        """Yield one contest per context, in the order of the candidates."""
        place = np.zeros(len(self.candidates), np.int64)
        for members in self.contexts.values():
            place[members] = np.arange(members.size)
        context = self.context[self.first]
        order = np.argsort(context, kind="stable")
        ends = np.searchsorted(context[order], np.arange(len(self.contexts) + 1))
        for number, members in enumerate(self.contexts.values()):
            own = order[ends[number] : ends[number + 1]]
            wins = np.zeros((members.size, members.size))
            i, j = place[self.first[own]], place[self.second[own]]
            np.add.at(wins, (i, j), self.weight[own] * self.outcome[own])
            np.add.at(wins, (j, i), self.weight[own] * (1 - self.outcome[own]))
            head = self.candidates[members[0]]
            name = head.context_id or f"(context of {head.id})"
            yield Contest(name, members, wins)

    def subset(self, keep: NDArray[np.bool_]) -> Comparisons:
        """Return the answers selected by ``keep``."""
        return Comparisons(
            self.candidates,
            self.first[keep],
            self.second[keep],
            self.outcome[keep],
            self.weight[keep],
            self.annotator[keep],
            self.annotators,
        )

    def without(self, names: Iterable[str]) -> Comparisons:
        """Return the answers without those of the annotators ``names``."""
        numbers = [self.annotators.index(name) for name in names]
        return self.subset(~np.isin(self.annotator, numbers))


def by_context(candidates: Sequence[Item]) -> dict[str, Ints]:
    """Return the numbers of the candidates that reply to each context."""
    groups: dict[str, list[int]] = {}
    for number, item in enumerate(candidates):
        groups.setdefault(item.group, []).append(number)
    return {name: np.array(members, np.int64) for name, members in groups.items()}


def question_from(record: dict[str, Any]) -> Answer:
    """Return a decoded JSON object as a question: a line of a plan, or an answer whose winner does
    not count."""
    return answer_from(record | {"winner": "tie"})


def answer_from(record: dict[str, Any]) -> Answer:
    """Return a decoded JSON object as an answer; ids may be integers, as in items."""
    for key in ("a", "b", "context_id", "annotator"):
        if type(record.get(key)) is int:  # excludes true and false
            record[key] = str(record[key])
    winner = record.get("winner")
    if isinstance(winner, str) and winner not in OUTCOMES:
        # msgspec's own message does not list the choices
        raise msgspec.ValidationError(f"Expected a, b or tie, got '{winner}' - at `$.winner`")
    return msgspec.convert(record, Answer)


def read_answers(
    candidates: Sequence[Item],
    sources: Iterable[JsonLines],
    *,
    strict: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> Comparisons:
    """Read the answers about ``candidates``; ``strict`` refuses contradicting answers."""
    return collect_answers(candidates, answer_lines(sources, on_progress), strict=strict)


def answer_lines(
    sources: Iterable[JsonLines], on_progress: Callable[[int], None] | None = None
) -> Iterator[tuple[str, int, Answer]]:
    """Yield the answers of files, each with its file and line."""
    yield from _decoded(sources, answer_from, on_progress)


def read_questions(
    candidates: Sequence[Item], sources: Iterable[JsonLines]
) -> list[tuple[int, int]]:
    """Return the pairs of candidates that files ask about, each once, in their order."""
    asked = collect_answers(candidates, _decoded(sources, question_from, None))
    return list(dict.fromkeys(zip(asked.first.tolist(), asked.second.tolist(), strict=True)))


def _decoded(
    sources: Iterable[JsonLines],
    convert: Callable[[dict[str, Any]], Answer],
    on_progress: Callable[[int], None] | None,
) -> Iterator[tuple[str, int, Answer]]:
    done = 0
    for lines in sources:
        empty = True
        for number, answer in lines.decode(convert):
            empty = False
            yield lines.name, number, answer
            done += 1
            if on_progress is not None and done % PROGRESS_STEP == 0:
                on_progress(done)
        if empty:
            raise lines.wrong(None, "the file is empty; expected answers, one JSON object per line")


def collect_answers(
    candidates: Sequence[Item],
    answers: Iterable[tuple[str, int, Answer]],
    *,
    strict: bool = False,
) -> Comparisons:
    """Check answers, each with its file and line, and gather them as columns."""
    place = {item.id: number for number, item in enumerate(candidates)}
    names: dict[str, int] = {}
    rows: list[tuple[int, int, float, int]] = []
    rows_by_pair: dict[tuple[int, int, int], list[int]] = {}
    where: list[tuple[str, int]] = []
    repeated = contradicting = 0
    for path, line, answer in answers:
        if problem := _problem(answer, candidates, place):
            raise DataError(problem, path=path, line=line)
        i, j, outcome = place[answer.a], place[answer.b], OUTCOMES[answer.winner]
        if j < i:
            i, j, outcome = j, i, 1 - outcome
        who = UNNAMED
        if answer.annotator is not None:
            who = names.setdefault(answer.annotator, len(names))
            before = rows_by_pair.setdefault((who, i, j), [])
            if before and any(rows[row][2] != outcome for row in before):
                if strict:
                    first = ":".join(map(str, where[before[0]]))
                    raise DataError(
                        f"'{answer.annotator}' gave another answer to this pair in {first};"
                        " expected one answer per annotator and pair",
                        path=path,
                        line=line,
                    )
                contradicting += 1
            elif before:
                repeated += 1
            before.append(len(rows))
        rows.append((i, j, outcome, who))
        where.append((path, line))
    weight = np.ones(len(rows))
    for same in rows_by_pair.values():
        weight[same] = 1 / len(same)
    table = np.array(rows, np.float64).reshape(-1, 4)
    numbers = table.astype(np.int64)
    return Comparisons(
        candidates,
        numbers[:, 0],
        numbers[:, 1],
        table[:, 2],
        weight,
        numbers[:, 3],
        list(names),
        repeated,
        contradicting,
    )


def _problem(answer: Answer, candidates: Sequence[Item], place: dict[str, int]) -> str | None:
    """Return the problem of an answer, or None."""
    for key, name in (("a", answer.a), ("b", answer.b)):
        if name not in place:
            return f"{key}: '{name}' is not among the candidates: {_suggestion(name, place)}"
    if answer.a == answer.b:
        return f"'{answer.a}' is compared with itself; expected two candidates of one context"
    groups = [candidates[place[name]].group for name in (answer.a, answer.b)]
    if groups[0] != groups[1]:
        return (
            f"'{answer.a}' and '{answer.b}' reply to different contexts;"
            " expected two candidates of one context"
        )
    context_id = candidates[place[answer.a]].context_id
    if None not in (answer.context_id, context_id) and answer.context_id != context_id:
        return f"context_id: '{answer.a}' replies to '{context_id}', not to '{answer.context_id}'"
    return None


def _suggestion(name: str, place: dict[str, int]) -> str:
    near = did_you_mean(name, place) if len(place) <= MAX_SUGGESTIONS else ""
    return near if near.startswith("did") else "expected the id of a candidate"
