"""Rehearse a study: copy it, serve the copy, let simulated people answer, look at the result."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sqlalchemy import select

from rejoinder.annotate.dealing import WORK
from rejoinder.annotate.rehearse.kinds import behaviour_of
from rejoinder.annotate.rehearse.kinds.behaviour import Behaviour
from rejoinder.annotate.rehearse.outcome import (
    Agreement,
    Rehearsal,
    RehearsedPerson,
    by_system,
    correlation,
    detect,
    evidence,
)
from rejoinder.annotate.rehearse.people import Manner, Pace, Person, all_at_once
from rejoinder.annotate.rehearse.server import running_server
from rejoinder.annotate.rehearse.study_copy import copied_study, new_database
from rejoinder.annotate.schema import answers, leases, tasks
from rejoinder.annotate.status import StudyStatus, study_status
from rejoinder.annotate.store import Store
from rejoinder.annotate.study import Study, StudySettings
from rejoinder.annotate.tasks.kind import StoredAnswer
from rejoinder.annotate.tasks.write import Write
from rejoinder.errors import UsageError
from rejoinder.meta_evaluation.agreement import krippendorff_alpha
from rejoinder.meta_evaluation.annotators import AnnotatorLimits
from rejoinder.pairwise.simulate import VIEW
from rejoinder.progress import Progress

MAX_PEOPLE = 500
USUAL_PEOPLE = 8
SECONDS = 4.0
"""Median time of an answer, as a multiple of the study's minimum."""
MAX_SPEED = 1000.0
LEASE_SECONDS = 10.0
"""Time runs so fast that a lease lasts so long, in the time of this machine."""


@dataclass(frozen=True)
class Crowd:
    """Who takes part."""

    people: int
    careless: int
    fast: int
    pasting: int

    @classmethod
    def of(
        cls,
        settings: StudySettings,
        people: int | None,
        careless: int | None,
        fast: int | None,
        pasting: int | None,
    ) -> Crowd:
        """Check the numbers of people; by default enough for the study, and some of each sort."""
        writing = settings.kind == "write"
        needed = max(USUAL_PEOPLE, settings.answers_per_task + 2)
        crowd = cls(
            needed if people is None else people,
            2 if careless is None else careless,
            1 if fast is None else fast,
            int(writing) if pasting is None else pasting,
        )
        special = crowd.careless + crowd.fast + crowd.pasting
        problems = []
        if not 1 <= crowd.people <= MAX_PEOPLE:
            problems.append(f"the number of people must be from 1 to {MAX_PEOPLE}")
        elif special > crowd.people:
            problems.append(
                f"{special} people are careless, fast or pasting, but there are only"
                f" {crowd.people} in all"
            )
        if crowd.pasting and not writing:
            problems.append("nobody can paste: in this study people do not write")
        if min(crowd.careless, crowd.fast, crowd.pasting) < 0:
            problems.append("numbers of people must not be negative")
        if problems:
            raise UsageError(*problems)
        return crowd

    def manners(self, rng: random.Random) -> list[Manner]:
        """Return the manner of each person, shuffled."""
        manners = [Manner.CARELESS] * self.careless + [Manner.FAST] * self.fast
        manners += [Manner.PASTING] * self.pasting
        manners += [Manner.CAREFUL] * (self.people - len(manners))
        rng.shuffle(manners)
        return manners


def rehearse(
    folder: Path,
    *,
    people: int | None = None,
    careless: int | None = None,
    fast: int | None = None,
    pasting: int | None = None,
    seconds: float | None = None,
    seed: int = 12345,
    view: float = VIEW,
    keep: Path | None = None,
    database: str | None = None,
    progress: Progress = lambda done, total: None,
) -> Rehearsal:
    """Let simulated people answer a copy of a study over HTTP.

    ``view`` says how much people disagree (:mod:`rejoinder.annotate.rehearse.opinions`). The copy
    is deleted at the end, unless a folder ``keep`` is given.
    """
    study = Study.read(folder)
    crowd = Crowd.of(study.settings, people, careless, fast, pasting)
    began = time.perf_counter()
    if keep is not None and database is not None:
        raise UsageError("only a rehearsal with SQLite can be kept")
    with copied_study(study, keep) as copy, new_database(database) as address:
        store = Store.open(copy, address)
        try:
            pace = _pace(study.settings, seconds)
            behaviour = behaviour_of(study.settings.kind)(store, seed, view)
            members = _members(store, crowd, behaviour, pace, seed)
            with running_server(copy, address, pace.speed) as base:
                tokens = store.invite([person.name for person in members])
                links = [f"{base}/p/{token}" for token in tokens]
                all_at_once(members, links, _counter(store, progress))
            return _outcome(store, behaviour, members, time.perf_counter() - began)
        finally:
            store.close()


def _pace(settings: StudySettings, seconds: float | None) -> Pace:
    least = settings.quality.min_seconds
    speed = max(1.0, min(MAX_SPEED, settings.lease_minutes * 60 / LEASE_SECONDS))
    return Pace(SECONDS * (least or 1.0) if seconds is None else seconds, least, speed)


def _members(
    store: Store, crowd: Crowd, behaviour: Behaviour, pace: Pace, seed: int
) -> list[Person]:
    """Return the people; every second one has a browser that runs no scripts."""
    expected = KnownAnswers(store)
    return [
        Person(
            f"person-{number}",
            manner,
            behaviour,
            pace,
            expected,
            script=number % 2 == 1,
            rng=random.Random(f"{seed}:{number}"),
        )
        for number, manner in enumerate(crowd.manners(random.Random(seed)), 1)
    ]


class KnownAnswers:
    """Looks up the right answers to tasks of the training round and of the entrance test."""

    def __init__(self, store: Store) -> None:
        self.store = store
        training = store.settings.training
        self.exist = bool(training.training or training.test)

    def __call__(self, lease: str) -> Mapping[str, list[str]]:
        """Return the right values of the fields of a task; nothing for one of the main phase."""
        if not self.exist:
            return {}
        with self.store.database.reading() as connection:
            row = connection.execute(
                select(tasks.c.phase, tasks.c.content, leases.c.view)
                .join(leases, leases.c.task == tasks.c.id)
                .where(leases.c.code == lease)
            ).one()
        if row.phase == WORK:
            return {}
        kind = self.store.kind
        if isinstance(kind, Write):
            contained = row.content["expected"].get("contains", [])[:1]
            return {
                "reply-0": [text.ljust(kind.slots[0].min_characters, "a") for text in contained]
            }
        return kind.expected_fields(row.content, row.view)


def _counter(store: Store, progress: Progress) -> Callable[[], None]:
    """Return a function that counts an answer."""
    with store.database.reading() as connection:
        _, wanted = store.kind.expected(connection)
    lock, done = threading.Lock(), 0

    def count() -> None:
        nonlocal done
        with lock:
            done += 1
            progress(min(done, wanted), wanted)

    return count


def _outcome(
    store: Store, behaviour: Behaviour, members: Sequence[Person], seconds: float
) -> Rehearsal:
    """Compare what is in the database with what the people did."""
    status = study_status(store)
    given = store.stored_answers()
    people = _people(status, members, given)
    unreliable = {each.name for each in status.people if each.unreliable}
    kept = [answer for answer in given if answer.person not in unreliable]
    estimates = behaviour.estimates(given)
    acknowledged = [lease for person in members for lease in person.acknowledged]
    latencies = [each for person in members for each in person.latencies] or [0.0]
    return Rehearsal(
        kind=store.settings.kind,
        database="SQLite" if store.database.is_sqlite else "PostgreSQL",
        people=people,
        tasks=status.tasks,
        complete=status.complete,
        answers=status.answers,
        wanted=status.wanted,
        over=_over(store),
        acknowledged=len(acknowledged),
        lost=_lost(store, acknowledged),
        sent_again=sum(person.sent_again for person in members),
        refused=sum(person.refused for person in members),
        repeats=sum(person.repeats for person in members),
        repeats_refused=sum(person.repeats_refused for person in members),
        agreement=_agreement(store, behaviour, members, given, status),
        correlation=correlation(estimates),
        correlation_without_unreliable=correlation(behaviour.estimates(kept)) if kept else None,
        systems=by_system(estimates),
        detection=detect(people),
        hours=sum(person.hours for person in people),
        hours_longest=max(person.hours for person in people),
        seconds=seconds,
        latency={
            "median": float(np.quantile(latencies, 0.5)),
            "95": float(np.quantile(latencies, 0.95)),
            "99": float(np.quantile(latencies, 0.99)),
        },
        errors=[error for person in members for error in person.errors],
    )


def _people(
    status: StudyStatus, members: Sequence[Person], given: Sequence[StoredAnswer]
) -> list[RehearsedPerson]:
    manners = {person.name: person.manner for person in members}
    seconds = dict.fromkeys(manners, 0.0)
    for answer in given:
        seconds[answer.person] += answer.seconds
    return [
        RehearsedPerson(
            each.name,
            manners[each.name].value,
            each.answers,
            seconds[each.name] / 3600,
            each.kappa,
            evidence(each),
        )
        for each in status.people
    ]


def _agreement(
    store: Store,
    behaviour: Behaviour,
    members: Sequence[Person],
    given: Sequence[StoredAnswer],
    status: StudyStatus,
) -> Agreement:
    """Return the agreement of the people who read what they judge, and that of all."""
    careful = [person.name for person in members if person.manner is not Manner.CARELESS]
    table = behaviour.answers(careful) if careful else None
    own = [answer for answer in given if answer.person in careful]
    review = store.kind.review(own, AnnotatorLimits()) if own else None
    without = status.without_unreliable
    return Agreement(
        None if table is None or len(table) < 2 else krippendorff_alpha(table),
        None if review is None else review.agreement.alpha,
        None if review is None else review.agreement.alpha_ci,
        status.agreement.alpha,
        None if without is None else without.alpha,
    )


def _over(store: Store) -> int:
    """Return the number of tasks with more answers or places taken than are wanted."""
    with store.database.reading() as connection:
        return len(
            connection.execute(
                select(tasks.c.id).where(
                    tasks.c.phase == WORK,
                    (tasks.c.answers > tasks.c.wanted) | (tasks.c.taken > tasks.c.wanted),
                )
            ).all()
        )


def _lost(store: Store, acknowledged: Sequence[str]) -> int:
    """Return the number of answers that the server acknowledged but does not have."""
    with store.database.reading() as connection:
        stored = set(
            connection.scalars(select(leases.c.code).join(answers, answers.c.lease == leases.c.id))
        )
    return len(set(acknowledged) - stored)
