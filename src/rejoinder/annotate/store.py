"""A study with its database: everything that pages, verbs and statistics ask of it.

The store holds no state of its own. What it knows is in the database, so that a server can be
killed and started again at any moment, and verbs of the command line work beside it.
"""

from __future__ import annotations

import asyncio
import hmac
import math
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import msgspec
import numpy as np
from sqlalchemy import Connection, Row, and_, bindparam, delete, func, insert, select, update

from rejoinder.annotate import schema
from rejoinder.annotate.answering import COUNTED, LATE, Answering, Reply
from rejoinder.annotate.clock import Clock
from rejoinder.annotate.database import Database, TryAgain
from rejoinder.annotate.dealing import (
    OPEN,
    TEST,
    TRAINING,
    WORK,
    Dealer,
    has_expired,
    return_expired,
    task_row,
)
from rejoinder.annotate.people_store import EXCLUDED, PeopleStore, hashed
from rejoinder.annotate.planned import StudyPlan
from rejoinder.annotate.schema import (
    LeaseRow,
    PersonRow,
    TaskRow,
    answers,
    facts,
    leases,
    people,
    sessions,
    tasks,
)
from rejoinder.annotate.settings_file import SettingsFile
from rejoinder.annotate.study import (
    DATABASE_FILE,
    STUDY_FILE,
    Study,
    StudySettings,
    refused_changes,
)
from rejoinder.annotate.tasks import kind_of
from rejoinder.annotate.tasks.kind import Form, Kind, NewTask, StoredAnswer
from rejoinder.errors import DataError

EXPIRY_SECONDS = 1.0
"""Time between two searches for leases that have expired."""
DEFAULT_ADDRESS = "http://127.0.0.1:8600"

Stage = Literal["consent", "instructions", "training", "test", "work", "failed"]
Step = Literal[
    "consent", "instructions", "task", "feedback", "batch", "done", "paused", "failed", "excluded"
]


@dataclass(frozen=True)
class NextStep:
    """What a person sees next."""

    step: Step
    lease: LeaseRow | None = None
    task: TaskRow | None = None
    phase: str = WORK
    done: int = 0
    """Answers of this person in this phase."""
    batch_done: int = 0
    """Answers in the current batch."""
    batch_size: int = 0
    """Tasks of the current batch, if others leave enough of them."""
    total: int | None = None
    """Tasks of this phase; None in the main phase, where it depends on the others."""


class Submitted(NamedTuple):
    """What became of an answer, and what the person does next (None: see the expected answer)."""

    person: int
    reply: Reply
    step: NextStep | None


class Held(NamedTuple):
    """A person who does something, whose row nobody else changes until the transaction ends."""

    person: PersonRow
    paused: bool
    """Whether the study is paused."""
    lease: LeaseRow | None
    """The person's lease that a form names, and its task."""
    task: TaskRow | None


# Everything that an answer needs is read by one statement, which is made once.

_PAUSED = select(facts.c.value).where(facts.c.name == "paused").scalar_subquery()
_WITH_TASK = people.outerjoin(
    leases, and_(leases.c.person == people.c.id, leases.c.code == bindparam("of_code"))
).outerjoin(tasks, tasks.c.id == leases.c.task)
_COLUMNS: list[Any] = [*people.c, _PAUSED, *leases.c, *tasks.c]
_READ = select(*_COLUMNS).with_for_update(of=people)
_HOLD = _READ.select_from(_WITH_TASK).where(people.c.id == bindparam("for_person"))
_HOLD_BY_SESSION = _READ.select_from(
    _WITH_TASK.join(sessions, sessions.c.person == people.c.id)
).where(sessions.c.hash == bindparam("of_hash"))
_LEASE_AT = len(people.c) + 1
_TASK_AT = _LEASE_AT + len(leases.c)


class Store(PeopleStore):
    """A study and its database."""

    def __init__(self, study: Study, database: Database, clock: Clock | None = None) -> None:
        self.study, self.database = study, database
        self.settings: StudySettings = study.settings
        self.kind: Kind[Any] = kind_of(self.settings.kind)(study)
        self.plan = StudyPlan.of(study)
        self._prepare()
        self.clock = clock or Clock(self._latest())
        self.dealer = Dealer(
            self.kind,
            self.settings.seed,
            self.settings.lease_minutes * 60,
            self.settings.answers_per_task,
        )
        self._searched = -math.inf
        self.answering = Answering(self.kind, self.settings.quality.min_seconds)
        self._tasks: int | None = None

    @classmethod
    def open(cls, folder: Path, address: str | None = None, clock: Clock | None = None) -> Store:
        """Open a study; ``address`` is that of a PostgreSQL database."""
        study = Study.read(folder)
        file = None if address else folder / DATABASE_FILE
        return cls(study, Database(address or "", sqlite_file=file), clock)

    # the study and its tasks

    def _prepare(self) -> None:
        with self.database.writing() as connection:
            schema.prepare(connection, self.database.name)
            before = self._fact(connection, "settings")
            if before is None:
                self._add_tasks(connection)
                self._set_fact(connection, "items", self.study.items_digest)
                self._set_fact(connection, "study", secrets.token_hex(8))
            else:
                self._check_changes(connection, before)
                if self.plan is not None:
                    self._add_planned(connection)
            self._set_fact(connection, "settings", msgspec.json.encode(self.settings).decode())
            if not self.kind.planned:
                connection.execute(
                    update(tasks)
                    .where(tasks.c.phase == WORK, tasks.c.wanted < self.settings.answers_per_task)
                    .values(wanted=self.settings.answers_per_task)
                )

    def _check_changes(self, connection: Connection, before: str) -> None:
        """Refuse changes of the study that do not go together with answers that exist."""
        path = self.study.folder / STUDY_FILE
        changed_items = self._fact(connection, "items") != self.study.items_digest
        known = msgspec.json.decode(before, type=StudySettings)
        problems = refused_changes(known, self.settings)
        if not changed_items and not problems:
            return
        if not connection.scalar(select(func.count()).select_from(answers)):
            connection.execute(delete(leases))
            connection.execute(delete(tasks))
            self._add_tasks(connection)
            self._set_fact(connection, "items", self.study.items_digest)
            return
        SettingsFile(path).check(problems)
        if changed_items:
            raise DataError(
                "has changed since the study began, and there are answers to the old items; put"
                " the old file back, or make a new study",
                path=str(self.study.folder / self.settings.items),
            )

    def _add_tasks(self, connection: Connection) -> None:
        """Make the tasks of the items, of the training round and of the entrance test."""
        items = self.study.items
        if problems := self.kind.item_problems(items):
            raise DataError("; ".join(problems), path=str(self.study.folder / self.settings.items))
        rng = np.random.default_rng(self.settings.seed)
        rows = self._work_rows(rng)
        for phase, name in (
            (TRAINING, self.settings.training.training),
            (TEST, self.settings.training.test),
        ):
            if name:
                known = self.kind.known_tasks(str(self.study.folder / name))
                rows += [
                    task_row(
                        NewTask(
                            f"{phase}-{number}",
                            -1,
                            -1,
                            {
                                **each.content,
                                "expected": each.expected,
                                "explanation": each.explanation,
                            },
                        ),
                        phase,
                        1_000_000,
                        0.0,
                    )
                    for number, each in enumerate(known)
                ]
        if rows:
            connection.execute(insert(tasks), rows)

    def _work_rows(self, rng: np.random.Generator) -> list[dict[str, Any]]:
        """Return the tasks of the items in a random order of contexts, or that of the plan."""
        made = self.kind.tasks(self.study.items, rng)
        if self.plan is None:
            order = rng.permutation(1 + max((task.context for task in made), default=0))
            placed = [(task, int(order[task.context])) for task in made]
        else:
            placed = self.plan.chosen_tasks(made)
        return [
            task_row(task, WORK, self.settings.answers_per_task, float(place + rng.random()))
            for task, place in placed
        ]

    def _add_planned(self, connection: Connection) -> None:
        """Add the tasks that a larger budget has room for."""
        known = set(connection.scalars(select(tasks.c.key)))
        rows = self._work_rows(np.random.default_rng(self.settings.seed))
        if new := [row for row in rows if row["key"] not in known]:
            connection.execute(insert(tasks), new)

    def _fact(self, connection: Connection, name: str) -> str | None:
        value = connection.scalar(select(facts.c.value).where(facts.c.name == name))
        return None if value is None else str(value)

    def _set_fact(self, connection: Connection, name: str, value: str) -> None:
        changed = connection.execute(update(facts).where(facts.c.name == name).values(value=value))
        if not changed.rowcount:
            connection.execute(insert(facts).values(name=name, value=value))

    def _latest(self) -> float:
        """Return the latest time in the database."""
        with self.database.reading() as connection:
            times = [
                connection.scalar(select(func.max(column)))
                for column in (people.c.seen, leases.c.issued, answers.c.received)
            ]
        return max((float(time) for time in times if time is not None), default=0.0)

    @property
    def study_id(self) -> str:
        """A random name of the study, which tells nothing about it."""
        with self.database.reading() as connection:
            return self._fact(connection, "study") or ""

    @property
    def paused(self) -> bool:
        with self.database.reading() as connection:
            return self._fact(connection, "paused") == "yes"

    def pause(self, paused: bool) -> None:
        """Stop dealing out tasks, or go on. Answers to tasks that people have are still stored."""
        with self.database.writing() as connection:
            self._set_fact(connection, "paused", "yes" if paused else "no")

    def secret(self, name: str, *, renew: bool = False) -> str | None:
        """Return a new secret whose hash is stored under a name; None if there is one already."""
        with self.database.writing() as connection:
            if self._fact(connection, name) is not None and not renew:
                return None
            token = secrets.token_urlsafe(24)
            self._set_fact(connection, name, hashed(token))
            return token

    def has_secret(self, name: str, token: str) -> bool:
        """Return whether a token is the one whose hash is stored under a name."""
        with self.database.reading() as connection:
            stored = self._fact(connection, name)
        return stored is not None and hmac.compare_digest(stored, hashed(token))

    def address(self, address: str | None = None) -> str:
        """Return the address of the study's pages: the given one, or that of the last server."""
        if address is None:
            with self.database.reading() as connection:
                address = self._fact(connection, "address")
        return (address or DEFAULT_ADDRESS).rstrip("/")

    def set_address(self, address: str) -> None:
        """Remember the address of the pages, for links of people who are invited later."""
        with self.database.writing() as connection:
            self._set_fact(connection, "address", address)

    # what a person does

    def next_step(self, person: int) -> NextStep:
        """Return what a person sees next, with a task that is dealt out to them."""
        self._return_expired_since(EXPIRY_SECONDS)
        return self._unless_done(
            person, self.database.write(lambda connection: self._next_step(connection, person))
        )

    def _unless_done(self, person: int, step: NextStep) -> NextStep:
        """Return what a person sees next: leases may have expired since the last search."""
        if step.step == "done" and self._return_expired_since(0.0):
            return self.database.write(lambda connection: self._next_step(connection, person))
        return step

    def _return_expired_since(self, seconds: float) -> bool:
        """Return tasks whose leases have expired, if the last search was longer ago.

        It has a transaction of its own, because it changes tasks in any order: another one that
        waits for it must not hold a task.
        """
        if not self._is_search_due(seconds):
            return False
        now = self._searched = self.clock.now()
        with self.database.reading() as connection:
            found = has_expired(connection, now)
        if found:
            self.return_expired()
        return found

    def _is_search_due(self, seconds: float) -> bool:
        return self.clock.now() - self._searched >= seconds

    def _next_step(self, connection: Connection, person: int) -> NextStep:
        held = self._hold(connection, person)
        if held is None or held.person.state == EXCLUDED:
            return NextStep("excluded")
        row = held.person
        if row.stage in ("consent", "instructions", "failed"):
            return NextStep(cast(Step, row.stage))
        if held.paused:
            return NextStep("paused")
        phase = row.stage
        while phase != WORK:
            done, total = self._known_progress(connection, row.id, phase)
            dealt = self.dealer.deal(connection, row.id, phase, self.clock.now())
            if dealt is not None:
                return NextStep("task", dealt.lease, dealt.task, phase, done, total=total)
            if phase == TEST and row.test_right < self.settings.training.pass_share * total:
                self._set_stage(connection, row.id, "failed")
                return NextStep("failed")
            phase = TEST if phase == TRAINING else WORK
            self._set_stage(connection, row.id, phase)
        return self._deal_work(connection, row, row.answers)

    def _deal_work(
        self, connection: Connection, row: PersonRow, done: int, *, new: bool = False
    ) -> NextStep:
        """Deal out a task of the main phase to a person with ``done`` answers.

        ``new``: the person is known to have no open task.
        """
        limit = self.settings.people.max_tasks
        if limit and done >= limit:
            return NextStep("done", done=done)
        if done >= row.batch_end:
            return NextStep("batch", done=done)
        dealt = self.dealer.deal(connection, row.id, WORK, self.clock.now(), new=new)
        if dealt is None:
            return NextStep("done", done=done)
        return self._work(connection, dealt.lease, dealt.task, row, done)

    def _same_step(self, connection: Connection, row: PersonRow, reply: Reply) -> NextStep:
        """Return the step of a task whose answer was refused."""
        assert reply.task is not None
        phase = reply.task.phase
        if phase == WORK:
            return self._work(connection, reply.lease, reply.task, row, row.answers)
        done, total = self._known_progress(connection, row.id, phase)
        return NextStep("task", reply.lease, reply.task, phase, done, total=total)

    def _work(
        self,
        connection: Connection,
        lease: LeaseRow | None,
        task: TaskRow,
        person: PersonRow,
        done: int,
    ) -> NextStep:
        """Return the step of a task of the main phase, with its place in the person's batch."""
        size = self.settings.tasks_per_batch
        batch_done = max(0, done - person.batch_end + size)
        if self._tasks is None:  # the study never gets more of them
            self._tasks, _ = self.kind.expected(connection)
        most = min(self._tasks, self.settings.people.max_tasks or self._tasks)
        size = max(batch_done + 1, min(size, most - (done - batch_done)))
        return NextStep("task", lease, task, WORK, done, batch_done, size)

    def _known_progress(self, connection: Connection, person: int, phase: str) -> tuple[int, int]:
        """Return how many tasks of the training round or test are done, and how many there are."""
        done = self._count(
            connection, answers, answers.c.person == person, answers.c.phase == phase
        )
        return done, self._count(connection, tasks, tasks.c.phase == phase)

    def submit(self, person: int, form: Form) -> Reply:
        """Check and store an answer. It is in the database when this returns."""
        return self.database.write(
            lambda connection: self._answer(connection, self._hold(connection, person, form), form)
        )

    def submit_and_continue(self, person: int, form: Form) -> tuple[Reply, NextStep | None]:
        """Store an answer and deal out the next task.

        After an answer that was refused, the next step is the same task. There is none in the
        training round, where people see the expected answer first.
        """
        self._return_expired_since(EXPIRY_SECONDS)
        reply, step = self.database.write(
            lambda connection: self._answer_and_deal(
                connection, self._hold(connection, person, form), form
            )
        )
        return reply, self._continued(person, reply, step)

    async def submit_of_session(self, token: str, form: Form) -> Submitted | None:
        """Do the same for the browser with a session, without a thread of its own; None if there
        is no such session."""
        if self._is_search_due(EXPIRY_SECONDS):
            await asyncio.to_thread(self._return_expired_since, EXPIRY_SECONDS)
        held_by = {"of_hash": hashed(token), "of_code": form.get("lease", "")}

        def both(connection: Connection) -> Submitted | None:
            held = _held(connection.execute(_HOLD_BY_SESSION, held_by).first())
            if held is None:
                return None
            return Submitted(held.person.id, *self._answer_and_deal(connection, held, form))

        done = await self.database.write_soon(both)
        if done is None or (done.step is not None and done.step.step != "done"):
            return done
        step = await asyncio.to_thread(self._continued, *done)
        return Submitted(done.person, done.reply, step)

    def _answer_and_deal(
        self, connection: Connection, held: Held | None, form: Form
    ) -> tuple[Reply, NextStep | None]:
        """Store an answer and deal out the next task in one transaction: one wait for the disk.

        It waits for another transaction only when it counts the answer of a task. A task that
        others are changing is not dealt out; then there is no next step yet.
        """
        reply = self._answer(connection, held, form)
        if held is None:
            return reply, None
        if reply.outcome == "refused":
            return reply, self._same_step(connection, held.person, reply)
        if _has_ended_a_task(reply) and not held.paused:
            with suppress(TryAgain):
                done = held.person.answers + 1
                return reply, self._deal_work(connection, held.person, done, new=True)
        return reply, None

    def _continued(self, person: int, reply: Reply, step: NextStep | None) -> NextStep | None:
        """Return the step after an answer, if the transaction of the answer did not find one."""
        if step is not None:
            return self._unless_done(person, step)
        if reply.task is not None and reply.task.phase == TRAINING:
            return None
        return self.next_step(person)

    def _answer(self, connection: Connection, held: Held | None, form: Form) -> Reply:
        """Store the answer of a person whose row is held."""
        if held is None or held.person.state == EXCLUDED:
            return Reply("unknown")
        if held.lease is None or held.task is None:
            return Reply("unknown")
        reply = self.answering.answer(connection, held.lease, held.task, form, self.clock.now())
        if reply.outcome == "stored" and held.task.phase == TEST:
            right = self.kind.is_expected(held.task.content, reply.value or {})
            connection.execute(
                update(people)
                .where(people.c.id == held.person.id)
                .values(test_right=people.c.test_right + int(right))
            )
        return reply

    def advance(self, person: int, stage: Stage) -> None:
        """Record that a person has agreed (consent) or read the instructions."""
        following: dict[str, Stage] = {
            "consent": "instructions",
            "instructions": "training",
        }
        if stage in following:
            with self.database.writing() as connection:
                connection.execute(
                    update(people)
                    .where(people.c.id == person, people.c.stage == stage)
                    .values(stage=following[stage], seen=self.clock.now())
                )

    def next_batch(self, person: int) -> None:
        """Begin a further batch of tasks."""
        with self.database.writing() as connection:
            connection.execute(
                update(people)
                .where(people.c.id == person, people.c.answers >= people.c.batch_end)
                .values(batch_end=people.c.answers + self.settings.tasks_per_batch)
            )

    def _hold(self, connection: Connection, person: int, form: Form | None = None) -> Held | None:
        """Return a person's row and keep others from changing it until the transaction ends."""
        named = {"for_person": person, "of_code": (form or {}).get("lease", "")}
        return _held(connection.execute(_HOLD, named).first())

    def _set_stage(self, connection: Connection, person: int, stage: str) -> None:
        connection.execute(update(people).where(people.c.id == person).values(stage=stage))

    def _count(self, connection: Connection, table: Any, *conditions: Any) -> int:
        return connection.scalar(select(func.count()).select_from(table).where(*conditions)) or 0

    # what the researcher reads

    def stored_answers(
        self, *, named: bool = True, with_excluded: bool = False, with_late: bool = False
    ) -> list[StoredAnswer]:
        """Return the answers of the main phase, in the order in which they came.

        ``named`` gives the names of people, otherwise their pseudonyms.
        """
        states = [COUNTED, *([EXCLUDED] if with_excluded else []), *([LATE] if with_late else [])]
        with self.database.reading() as connection:
            rows = connection.execute(
                select(
                    answers,
                    tasks.c.key,
                    tasks.c.content,
                    leases.c.view,
                )
                .join(tasks, tasks.c.id == answers.c.task)
                .join(leases, leases.c.id == answers.c.lease)
                .where(answers.c.phase == WORK, answers.c.state.in_(states))
                .order_by(answers.c.id)
            ).all()
        labels = self.labels(named=named)
        return [
            StoredAnswer(
                labels[row.person],
                row.key,
                row.content,
                row.view,
                row.value,
                row.comment,
                row.seconds,
                row.received,
                list(row.flags),
            )
            for row in rows
        ]

    def return_expired(self) -> None:
        """Return tasks whose leases have expired."""
        self.database.write(lambda connection: return_expired(connection, self.clock.now()))

    def close(self) -> None:
        self.database.close()


def _held(row: Row[*tuple[Any, ...]] | None) -> Held | None:
    """Return what a statement has read about a person."""
    if row is None:
        return None
    person = PersonRow(*row[: _LEASE_AT - 1])
    paused = row[_LEASE_AT - 1] == "yes"
    if row[_LEASE_AT] is None:
        return Held(person, paused, None, None)
    return Held(person, paused, LeaseRow(*row[_LEASE_AT:_TASK_AT]), TaskRow(*row[_TASK_AT:]))


def _has_ended_a_task(reply: Reply) -> bool:
    """Return whether an answer has ended the only open task of a person in the main phase."""
    return (
        reply.outcome == "stored"
        and reply.task is not None
        and reply.task.phase == WORK
        and reply.lease is not None
        and reply.lease.state == OPEN
    )
