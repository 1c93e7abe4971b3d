"""Deal out tasks: every task to k different people, nobody twice, balanced, safe for many at once.

A person gets an open task of their own again, if there is one (they come back, or reload the
page). Otherwise tasks that others have begun come first, so that they are complete early and
agreement can be watched from the beginning; among equals, the one whose context and system this
person has seen least. Contexts come in random blocks, one after the other, so that whole contexts
are complete early, too. A task that is dealt out is *leased*: it counts as taken
until it is answered, or until the lease expires and somebody else gets it.

Two people may choose the same task at the same moment. ``taken`` is increased by one statement
that checks the limit, so only one of them gets the last place, and the other tries the next task;
if there is none, the transaction is tried again.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import (
    BindParameter,
    Connection,
    CursorResult,
    Integer,
    Row,
    and_,
    bindparam,
    exists,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from rejoinder.annotate.database import TryAgain
from rejoinder.annotate.schema import LeaseRow, TaskRow, leases, one_at_a_time, tasks
from rejoinder.annotate.tasks.kind import Kind, NewTask

OPEN, ANSWERED, EXPIRED = "open", "answered", "expired"
TRAINING, TEST, WORK = "training", "test", "work"
BLOCK = 20
"""Contexts that are asked before the next ones are begun."""
CANDIDATES = 200
"""Tasks among which the one is chosen that is best balanced for a person."""
FEW_CANDIDATES = 40
"""Tasks that are read first: mostly there are fewer that are equally far."""


class Dealt(NamedTuple):
    """A task that a person has been given."""

    lease: LeaseRow
    task: TaskRow


# Statements are made once: that takes longer than the database needs to execute them.

_PERSON: BindParameter[int] = bindparam("for_person")
_TASK: BindParameter[int] = bindparam("for_task")
_LISTED: tuple[Any, ...] = (
    *(tasks.c.id, tasks.c.taken, tasks.c.shuffled, tasks.c.context, tasks.c.system),
)
"""What the choice of a task needs; texts are read of the chosen one only."""
_NOT_HAD = ~exists().where(
    and_(
        leases.c.task == tasks.c.id,
        leases.c.person == _PERSON,
        leases.c.state.in_([OPEN, ANSWERED]),
    )
)
_FREE = (
    select(*_LISTED)
    .where(
        tasks.c.phase == WORK,
        tasks.c.taken < bindparam("most"),  # as below, but found by the index
        tasks.c.taken < tasks.c.wanted,
        _NOT_HAD,
    )
    .order_by(tasks.c.taken.desc(), tasks.c.shuffled)
    .limit(bindparam("candidates", type_=Integer))
)
_NEXT_KNOWN = (
    select(tasks)
    .where(tasks.c.phase == bindparam("of_phase"), _NOT_HAD)
    .order_by(tasks.c.id)
    .limit(1)
)
_HISTORY = (
    select(tasks.c.context, tasks.c.system, func.count())
    .join(leases, leases.c.task == tasks.c.id)
    .where(leases.c.person == _PERSON, leases.c.state == ANSWERED, tasks.c.phase == WORK)
    .group_by(tasks.c.context, tasks.c.system)
)
_OWN = (
    select(leases)
    .join(tasks, tasks.c.id == leases.c.task)
    .where(
        leases.c.person == _PERSON,
        leases.c.state == OPEN,
        tasks.c.phase == bindparam("of_phase"),
    )
    .order_by(leases.c.id)
    .limit(1)
)
_TASK_OF_ID = select(tasks).where(tasks.c.id == _TASK)
_RENEW = update(leases).where(leases.c.id == bindparam("of_id")).values(expires=bindparam("until"))
_EXPIRED = (
    select(leases.c.id, leases.c.task)
    .where(leases.c.state == OPEN, leases.c.expires < bindparam("now"))
    .limit(1000)
)
_HAS_PLACE = (tasks.c.id == _TASK) & (tasks.c.taken < tasks.c.wanted)
_TAKE_PLACE = {
    "sqlite": update(tasks).where(_HAS_PLACE).values(taken=tasks.c.taken + 1).returning(*tasks.c),
    "postgresql": update(tasks)
    .where(
        tasks.c.id
        == select(tasks.c.id).where(_HAS_PLACE).with_for_update(skip_locked=True).scalar_subquery()
    )
    .values(taken=tasks.c.taken + 1)
    .returning(*tasks.c),
}


def _lease_statement(new: sqlite.Insert | postgresql.Insert) -> Any:
    """Add a lease; one that the person had before is opened again."""
    return new.on_conflict_do_update(
        index_elements=["task", "person"],
        set_={"state": new.excluded.state, "expires": new.excluded.expires},
    ).returning(*leases.c)


_OPEN_LEASE = {
    "sqlite": _lease_statement(sqlite.insert(leases)),
    "postgresql": _lease_statement(postgresql.insert(leases)),
}


class Dealer:
    """Deals out the tasks of a study."""

    def __init__(
        self, kind: Kind[Any], seed: int, lease_seconds: float, answers_per_task: int
    ) -> None:
        self.kind, self.seed = kind, seed
        self.lease_seconds, self.answers_per_task = lease_seconds, answers_per_task

    def deal(
        self, connection: Connection, person: int, phase: str, now: float, *, new: bool = False
    ) -> Dealt | None:
        """Deal out the person's next task; None if there is none left for them.

        The caller's transaction holds the person's row, so that two windows of one browser get the
        same task. ``new``: the person is known to have no open task.
        """
        own = None if new else self._own(connection, person, phase, now)
        return own or self._deal_new(connection, person, phase, now)

    def _own(self, connection: Connection, person: int, phase: str, now: float) -> Dealt | None:
        """Return the open task of a person; the lease begins again."""
        own = connection.execute(_OWN, {"for_person": person, "of_phase": phase}).first()
        if own is None:
            return None
        connection.execute(_RENEW, {"of_id": own.id, "until": now + self.lease_seconds})
        task = connection.execute(_TASK_OF_ID, {"for_task": own.task}).one()
        return Dealt(LeaseRow(*own), TaskRow(*task))

    def _deal_new(
        self, connection: Connection, person: int, phase: str, now: float
    ) -> Dealt | None:
        """Deal out a task that the person does not have."""
        if phase != WORK:  # everybody does all of them, in the order of the file
            known = {"for_person": person, "of_phase": phase}
            row = connection.execute(_NEXT_KNOWN, known).first()
            return None if row is None else self._lease(connection, TaskRow(*row), person, now)
        if self.kind.planned:
            return self._deal_planned(connection, person, now)
        candidate = None
        for candidate in self._candidates(connection, person):
            if (task := take_place(connection, candidate)) is not None:
                return self._lease(connection, task, person, now)
        if candidate is not None:
            raise TryAgain("other people are taking the last tasks")
        return None

    def _candidates(self, connection: Connection, person: int) -> Iterator[int]:
        """Yield tasks with a free place that the person has not had, the best balanced first."""
        free = {"for_person": person, "most": self.answers_per_task}
        found = connection.execute(_FREE, {**free, "candidates": FEW_CANDIDATES}).all()
        if len(found) == FEW_CANDIDATES and _block(found[0]) == _block(found[-1]):
            found = connection.execute(_FREE, {**free, "candidates": CANDIDATES}).all()
        history: tuple[Counter[int], Counter[int]] | None = None
        for _, equals in groupby(found, _block):
            block = list(equals)
            if len(block) > 1:
                contexts, systems = history = history or self._history(connection, person)
                block.sort(key=lambda row: (contexts[row.context], systems[row.system]))
            yield from (row.id for row in block)

    def _history(self, connection: Connection, person: int) -> tuple[Counter[int], Counter[int]]:
        """Return how often a person has had each context and each system."""
        contexts: Counter[int] = Counter()
        systems: Counter[int] = Counter()
        for context, system, count in connection.execute(_HISTORY, {"for_person": person}):
            contexts[context] += count
            systems[system] += count
        return contexts, systems

    def _deal_planned(self, connection: Connection, person: int, now: float) -> Dealt | None:
        """Make, or find, the task that the kind plans next, and lease it."""
        one_at_a_time(connection)  # two people must not get the last pair that is to be asked
        number = connection.scalar(
            select(func.count()).select_from(leases).where(leases.c.person == person)
        )
        rng = np.random.default_rng([self.seed, person, number or 0])
        for _ in range(10):
            planned = self.kind.next_task(connection, person, rng)
            if planned is None:
                return None
            found = self._find_or_add(connection, planned)
            task = None if found is None else take_place(connection, found)
            if task is not None:
                return self._lease(connection, task, person, now)
        raise TryAgain("other people are taking the same pairs")

    def _find_or_add(self, connection: Connection, planned: NewTask) -> int | None:
        """Return the id of a planned task; None if somebody else has just added it."""
        wanted = planned.wanted or self.answers_per_task
        known = connection.execute(
            select(tasks.c.id, tasks.c.wanted).where(tasks.c.key == planned.key)
        ).first()
        if known is not None:
            if known.wanted < wanted:  # the study wants more answers than when it was planned
                connection.execute(
                    update(tasks).where(tasks.c.id == known.id).values(wanted=wanted)
                )
            return int(known.id)
        try:
            with connection.begin_nested():
                added = connection.execute(
                    insert(tasks).values(**task_row(planned, WORK, wanted, 0.0))
                )
        except IntegrityError:
            return None
        return new_id(added)

    def _lease(self, connection: Connection, task: TaskRow, person: int, now: float) -> Dealt:
        """Lease a task to a person.

        A task that the person had before, until the lease expired, comes back as it was: with the
        same words masked, and under the same code, so that an answer that their browser has kept
        is still accepted.
        """
        variant = self._variant(connection, task.id)
        rng = np.random.default_rng([self.seed, task.id, person])
        values = {
            "task": task.id,
            "person": person,
            "code": secrets.token_urlsafe(16),
            "state": OPEN,
            "variant": variant,
            "view": self.kind.view(task.content, variant, rng),
            "issued": now,
            "expires": now + self.lease_seconds,
        }
        lease = connection.execute(_OPEN_LEASE[connection.dialect.name], values).one()
        return Dealt(LeaseRow(*lease), task)

    def _variant(self, connection: Connection, task: int) -> int:
        """Choose a variant with a free place, at random in proportion to the free places.

        The caller has increased the task's ``taken`` in this transaction, so nobody else deals out
        this task until the transaction ends.
        """
        places = np.array(self.kind.variants(), float)
        if places.size < 2:
            return 0
        rows = connection.execute(
            select(leases.c.variant, func.count())
            .where(leases.c.task == task, leases.c.state.in_([OPEN, ANSWERED]))
            .group_by(leases.c.variant)
        )
        number = 0
        for variant, count in rows:
            places[variant] -= count
            number += count
        free = np.maximum(places, 0)
        if not free.sum():  # more answers are wanted than there are places: begin again
            free = np.array(self.kind.variants(), float)
        rng = np.random.default_rng([self.seed, task, number])
        return int(rng.choice(free.size, p=free / free.sum()))


def _block(task: Row[Any]) -> tuple[int, int]:
    """Return what tasks have in common that are equally far: one of them is chosen for balance."""
    return task.taken, int(task.shuffled) // BLOCK


def take_place(connection: Connection, task: int) -> TaskRow | None:
    """Take one of the places of a task and return the task; None if there is none, or if somebody
    else is changing the task at this moment.

    PostgreSQL would wait for the other transaction. It keeps a lock on every row that it waited
    for, so that people who try several tasks in different order could wait for each other.
    """
    row = connection.execute(_TAKE_PLACE[connection.dialect.name], {"for_task": task}).first()
    return None if row is None else TaskRow(*row)


def has_expired(connection: Connection, now: float) -> bool:
    """Return whether there are leases that have expired."""
    return connection.execute(_EXPIRED, {"now": now}).first() is not None


def return_expired(connection: Connection, now: float) -> None:
    """Return tasks whose leases have expired, so that others can have them."""
    for lease, task in connection.execute(_EXPIRED, {"now": now}).all():
        changed = connection.execute(
            update(leases).where(leases.c.id == lease, leases.c.state == OPEN).values(state=EXPIRED)
        )
        if changed.rowcount:
            give_back(connection, task)


def give_back(connection: Connection, task: int) -> None:
    """Free a place of a task that was leased but not answered."""
    connection.execute(
        update(tasks)
        .where(tasks.c.id == task, tasks.c.taken > 0, tasks.c.phase == WORK)
        .values(taken=tasks.c.taken - 1)
    )


def task_row(task: NewTask, phase: str, wanted: int, shuffled: float) -> dict[str, Any]:
    """Return the row of a new task."""
    return {
        "key": task.key,
        "phase": phase,
        "context": task.context,
        "system": task.system,
        "shuffled": shuffled,
        "wanted": wanted,
        "content": task.content,
    }


def new_id(added: CursorResult[Any]) -> int:
    """Return the id of a row that was inserted."""
    key = added.inserted_primary_key
    assert key is not None
    return int(key[0])
