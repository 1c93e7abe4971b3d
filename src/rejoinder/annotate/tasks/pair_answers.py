"""The answers about the pairs of a context, read from the database when the next pair is planned.

What was read is kept, so that a deal reads only what has been answered since. It is read again as
a whole if the number and the ids of the answers do not fit to it, for example after a person was
excluded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sqlalchemy import ColumnElement, Connection, func, or_, select

from rejoinder.annotate.answering import COUNTED
from rejoinder.annotate.dealing import ANSWERED, OPEN, WORK
from rejoinder.annotate.schema import answers, leases, tasks
from rejoinder.pairwise.answers import OUTCOMES, Floats

Pair = tuple[int, int]
"""Numbers of two replies to a context, the smaller first."""


def key_of(context: int, pair: Pair) -> str:
    """Return the key of the task that asks for a pair."""
    return f"pair-{context}-{pair[0]}-{pair[1]}"


def pair_of(key: str) -> Pair:
    """Return the pair of a task."""
    _, _, first, second = key.split("-")
    return int(first), int(second)


@dataclass(frozen=True)
class ContextAnswers:
    """The answers about the pairs of a context."""

    wins: Floats
    """[n, n] how often the reply of the row was preferred to that of the column; a tie is half a
    win for both."""
    people: frozenset[int] = frozenset()
    """Who gave them."""
    count: int = 0
    sum_of_ids: int = 0
    last: int = 0
    """Id of the last answer."""
    received: float = 0.0
    """When the last answer came: ids are given again if a transaction fails, times are not."""


@dataclass(frozen=True)
class OpenPair:
    """A pair that is being asked, or that further people should be asked."""

    pair: Pair
    taken: int
    answers: int
    is_repeated: bool


class PairAnswers:
    """Reads the answers about the pairs of each context."""

    def __init__(self) -> None:
        self._read: dict[int, ContextAnswers] = {}

    def of(self, connection: Connection, context: int, size: int) -> ContextAnswers:
        """Return the answers about a context with ``size`` replies."""
        nothing = ContextAnswers(np.zeros((size, size)))
        fresh = _continued(connection, context, self._read.get(context, nothing))
        if fresh is None:
            fresh = _continued(connection, context, nothing) or nothing
        self._read[context] = fresh
        return fresh


def _continued(
    connection: Connection, context: int, known: ContextAnswers
) -> ContextAnswers | None:
    """Return what was read with the answers that came since; None if the rest has changed."""
    counted = (
        tasks.c.context == context,
        tasks.c.phase == WORK,
        answers.c.state == COUNTED,
    )
    joined = answers.join(tasks, tasks.c.id == answers.c.task)
    count, total = connection.execute(
        select(func.count(), func.coalesce(func.sum(answers.c.id), 0))
        .select_from(joined)
        .where(*counted)
    ).one()
    if known.count and (count, total) == (known.count, known.sum_of_ids):
        condition = answers.c.id == known.last
    else:
        condition = answers.c.id >= known.last
    rows = connection.execute(
        select(answers.c.id, answers.c.person, answers.c.received, answers.c.value, tasks.c.key)
        .select_from(joined)
        .where(*counted, condition)
        .order_by(answers.c.id)
    ).all()
    if known.count:
        if not rows or (rows[0].id, rows[0].received) != (known.last, known.received):
            return None
        rows = rows[1:]
    if count != known.count + len(rows) or total != known.sum_of_ids + sum(r.id for r in rows):
        return None
    if not rows:
        return known
    wins = known.wins.copy()
    for row in rows:
        first, second = pair_of(row.key)
        won = OUTCOMES[row.value["winner"]]
        wins[first, second] += won
        wins[second, first] += 1 - won
    people = known.people.union(row.person for row in rows)
    return ContextAnswers(wins, people, count, int(total), rows[-1].id, rows[-1].received)


def open_pairs(connection: Connection, context: int, answers_per_repeated: int) -> list[OpenPair]:
    """Return the pairs of a context that are being asked, and those that further people should
    be asked."""
    rows = connection.execute(
        select(tasks.c.key, tasks.c.taken, tasks.c.answers, tasks.c.wanted).where(
            tasks.c.context == context,
            tasks.c.phase == WORK,
            tasks.c.taken > 0,
            or_(
                tasks.c.taken > tasks.c.answers,
                (tasks.c.wanted > 1) & (tasks.c.taken < answers_per_repeated),
            ),
        )
    )
    return [OpenPair(pair_of(row.key), row.taken, row.answers, row.wanted > 1) for row in rows]


def pairs_of_person(connection: Connection, person: int, context: int) -> set[Pair]:
    """Return the pairs of a context that a person has had."""
    keys = connection.scalars(
        select(tasks.c.key)
        .join(leases, leases.c.task == tasks.c.id)
        .where(*_had(person), tasks.c.context == context)
    )
    return set(map(pair_of, keys))


def contexts_of_person(connection: Connection, person: int) -> dict[int, int]:
    """Return how many pairs of each context a person has had."""
    rows = connection.execute(
        select(tasks.c.context, func.count())
        .join(leases, leases.c.task == tasks.c.id)
        .where(*_had(person))
        .group_by(tasks.c.context)
    )
    return {row[0]: row[1] for row in rows}


def _had(person: int) -> tuple[ColumnElement[bool], ...]:
    return (
        leases.c.person == person,
        leases.c.state.in_([OPEN, ANSWERED]),
        tasks.c.phase == WORK,
    )
