"""Accept answers: each once, checked, and stored before it is acknowledged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import Connection, Integer, and_, bindparam, insert, or_, select, update

from rejoinder.annotate.database import TryAgain
from rejoinder.annotate.dealing import ANSWERED, EXPIRED, WORK, take_place
from rejoinder.annotate.schema import (
    LeaseRow,
    TaskRow,
    answers,
    leases,
    people,
    refusals,
    tasks,
)
from rejoinder.annotate.tasks.kind import Accepted, EarlierReply, Form, Kind, Refusal

COUNTED, LATE = "counted", "late"
"""States of an answer: late ones came after the task had been given to somebody else."""

Outcome = Literal["stored", "repeated", "late", "refused", "unknown"]
MAX_COMMENT = 2000
MAX_NOTED = 1000
"""Refused answers of a person whose reasons are kept."""
MAX_REPORTED_SECONDS = 86_400.0


@dataclass(frozen=True)
class Reply:
    """What became of an answer."""

    outcome: Outcome
    refusals: list[Refusal] = field(default_factory=list)
    lease: LeaseRow | None = None
    task: TaskRow | None = None
    value: dict[str, Any] | None = None


# Statements are made once: that takes longer than the database needs to execute them.

_NEW = {
    each.name: bindparam(f"new_{each.name}", type_=each.type)
    for each in answers.c
    if not each.primary_key
}
_END_LEASE = (
    update(leases)
    .where(leases.c.id == bindparam("of_lease"), leases.c.state == bindparam("read_state"))
    .values(state=ANSWERED)
)
_COUNT_ANSWER = (
    update(tasks)
    .where(tasks.c.id == bindparam("of_task"))
    .values(answers=tasks.c.answers + bindparam("counted", type_=Integer))
)
_COUNT_OF_PERSON = (
    update(people)
    .where(people.c.id == bindparam("of_person"))
    .values(answers=people.c.answers + bindparam("worked", type_=Integer), seen=bindparam("now"))
)


def _in_one_message() -> Any:
    """Return the statement that stores an answer in PostgreSQL, which may be on another machine.

    It stores and counts nothing if the lease has changed since it was read: the row that a
    transaction waited for is read again, the lease beside it is not.
    """
    ended = _END_LEASE.returning(leases.c.id).cte("ended")
    happened = select(ended.c.id).exists()
    return (
        insert(answers)
        .from_select(list(_NEW), select(*_NEW.values()).select_from(ended))
        .add_cte(
            _COUNT_ANSWER.where(happened).cte("answer_counted"),
            _COUNT_OF_PERSON.where(happened).cte("person_counted"),
        )
        .returning(answers.c.id)
    )


_TO_STORE: dict[str, tuple[Any, ...]] = {
    # one thread writes, so that nothing changes between reading and storing
    "sqlite": (_END_LEASE, _COUNT_ANSWER, _COUNT_OF_PERSON, insert(answers).values(_NEW)),
    "postgresql": (_in_one_message(),),
}


class Answering:
    """Accepts the answers of a study."""

    def __init__(self, kind: Kind[Any], min_seconds: float) -> None:
        self.kind, self.min_seconds = kind, min_seconds

    def answer(
        self, connection: Connection, lease: LeaseRow, task: TaskRow, form: Form, now: float
    ) -> Reply:
        """Store the answer in a form to a task that a person has.

        A form that is sent twice is stored once. The caller's transaction holds the person's row.
        """
        if lease.state == ANSWERED:
            stored = connection.scalar(select(answers.c.value).where(answers.c.lease == lease.id))
            return Reply("repeated", lease=lease, task=task, value=stored)
        checked = self.kind.check(
            task.content,
            lease.view,
            form,
            lambda: self._earlier(connection, lease.task, lease.person),
        )
        if not isinstance(checked, Accepted):
            self._note(connection, lease.person, lease.task, checked, now)
            return Reply("refused", checked, lease, task)
        state = COUNTED
        expired = lease.state == EXPIRED and task.phase == WORK
        if expired and take_place(connection, lease.task) is None:
            state = LATE  # kept, but the task has its answers from other people
        self._store(connection, lease, task, checked, form, state, now)
        outcome: Outcome = "stored" if state == COUNTED else "late"
        return Reply(outcome, lease=lease, task=task, value=checked.value)

    def _store(
        self,
        connection: Connection,
        lease: LeaseRow,
        task: TaskRow,
        accepted: Accepted,
        form: Form,
        state: str,
        now: float,
    ) -> None:
        seconds = _seconds(form, now - lease.issued)
        flags = list(accepted.flags)
        if seconds < self.min_seconds:
            flags.append("too_fast")
        work = task.phase == WORK
        values = {
            "new_lease": lease.id,
            "new_task": lease.task,
            "new_person": lease.person,
            "new_phase": task.phase,
            "new_state": state,
            "new_value": accepted.value,
            "new_comment": form.get("comment", "").strip()[:MAX_COMMENT],
            "new_seconds": seconds,
            "new_received": now,
            "new_flags": flags,
            "of_lease": lease.id,
            "read_state": lease.state,
            "of_task": lease.task,
            "of_person": lease.person,
            "counted": int(work and state == COUNTED),
            "worked": int(work),
            "now": now,
        }
        for statement in _TO_STORE[connection.dialect.name]:
            result = connection.execute(statement, values)
        if result.returns_rows and result.first() is None:
            raise TryAgain("the lease has changed since it was read")

    def _note(
        self, connection: Connection, person: int, task: int, why: list[Refusal], now: float
    ) -> None:
        """Count a refused answer, for the researcher."""
        before = connection.scalar(select(people.c.refused).where(people.c.id == person)) or 0
        for refusal in why if before < MAX_NOTED else ():
            connection.execute(
                insert(refusals).values(person=person, task=task, reason=refusal.reason, time=now)
            )
        connection.execute(
            update(people).where(people.c.id == person).values(refused=people.c.refused + 1)
        )

    def _earlier(self, connection: Connection, task: int, person: int) -> list[EarlierReply]:
        """Return all replies to this context, and the person's own to other contexts."""
        # nobody else answers this task until the transaction ends
        connection.execute(update(tasks).where(tasks.c.id == task).values(taken=tasks.c.taken))
        rows = connection.execute(
            select(answers.c.task, answers.c.person, answers.c.value).where(
                and_(
                    or_(answers.c.task == task, answers.c.person == person),
                    answers.c.phase == WORK,
                )
            )
        )
        return [
            EarlierReply(text, row.person == person, row.task == task)
            for row in rows
            for text in self.kind.replies(row.value)
        ]


def _seconds(form: Form, since_issued: float) -> float:
    """Return the time that an answer took: as the browser measured it, but never more than since
    the task was dealt out, which includes time away from the page."""
    try:
        measured = float(form.get("seconds", ""))
    except ValueError:
        measured = since_issued
    if not 0 < measured <= MAX_REPORTED_SECONDS:
        measured = since_issued
    return round(max(0.0, min(measured, since_issued)), 3)
