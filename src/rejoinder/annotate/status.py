"""The state of a study: progress, people, agreement, ranking of systems.

Agreement, unreliable annotators and rankings come from the functions that ``meta``, ``pairs fit``
and ``compare`` use.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import func, select

from rejoinder.annotate.answering import COUNTED
from rejoinder.annotate.dealing import WORK
from rejoinder.annotate.people_store import EXCLUDED
from rejoinder.annotate.planned import PlanStatus
from rejoinder.annotate.schema import answers, names, people, refusals, tasks
from rejoinder.annotate.store import Store
from rejoinder.annotate.tasks.kind import Review, StoredAnswer
from rejoinder.errors import RejoinderError
from rejoinder.meta_evaluation.annotators import AnnotatorLimits

PACE_SECONDS = 1800.0
"""The time left is estimated from the answers of the last half hour."""


@dataclass(frozen=True)
class PersonStatus:
    """One person's work so far."""

    person: int
    name: str
    """The name, or the pseudonym of a person who was forgotten."""
    pseudonym: str
    state: str
    stage: str
    answers: int
    refused: dict[str, int]
    """How often an answer was refused, by reason."""
    median_seconds: float | None
    kappa: float | None
    """Mean Cohen's kappa with the other people."""
    distractor_share: float | None
    """How often distractors were preferred to other replies."""
    flags: dict[str, int]
    unreliable: str | None
    """Why the person's answers should be left out, if they should."""
    unreliable_by: str | None
    """Which limit of [quality] that is about: ``distractors`` or ``kappa``."""


@dataclass(frozen=True)
class Agreement:
    """Agreement between people, with 95 % intervals."""

    alpha: float | None = None
    ci: tuple[float, float] | None = None
    kappa: float | None = None
    kappa_ci: tuple[float, float] | None = None


@dataclass(frozen=True)
class RankedSystem:
    """A system's mean rating so far, with its 95 % interval."""

    system: str
    mean: float
    ci: tuple[float, float]


@dataclass(frozen=True)
class StudyStatus:
    """Everything that the researcher's page shows."""

    title: str
    kind: str
    tasks: int
    complete: int
    """Tasks with all answers that are wanted."""
    answers: int
    wanted: int
    """Answers that are wanted in all."""
    paused: bool
    seconds_left: float | None
    """At the pace of the last half hour; None if nobody answered in it."""
    people: list[PersonStatus]
    agreement: Agreement
    without_unreliable: Agreement | None
    """Agreement without the people who would be left out; None if nobody would."""
    ranking: list[RankedSystem] = field(default_factory=list)
    """Systems from best to worst, over the contexts in which all of them were rated."""
    ranking_without_unreliable: list[RankedSystem] = field(default_factory=list)
    """The ranking without the people who would be left out; empty if nobody would."""
    plan: PlanStatus | None = None
    """What the ratings decide, in a study with a plan."""


def study_status(store: Store) -> StudyStatus:
    """Return the state of a study."""
    given = store.stored_answers(named=True)
    review = store.kind.review(given, quality_limits(store))
    kept = _kept(given, review)
    with store.database.reading() as connection:
        complete = connection.scalar(
            select(func.count())
            .select_from(tasks)
            .where(tasks.c.phase == WORK, tasks.c.answers >= tasks.c.wanted)
        )
        count, wanted = store.kind.expected(connection)
        recent = connection.scalar(
            select(func.count())
            .select_from(answers)
            .where(
                answers.c.received > store.clock.now() - PACE_SECONDS,
                answers.c.phase == WORK,
                answers.c.state == COUNTED,
            )
        )
    return StudyStatus(
        store.settings.title,
        store.settings.kind,
        count,
        complete or 0,
        len(given),
        wanted,
        store.paused,
        _seconds_left(store, given, wanted, recent or 0),
        _people(store, given, review),
        _agreement(review),
        None if kept is None else _agreement(store.kind.review(kept, AnnotatorLimits())),
        _ranking(store, given),
        [] if kept is None else _ranking(store, kept),
        None if store.plan is None else store.plan.status(store.kind.rated_items(given)),
    )


def quality_limits(store: Store) -> AnnotatorLimits:
    """Return the limits beyond which a person would be left out."""
    quality = store.settings.quality
    return AnnotatorLimits(quality.min_kappa, quality.max_distractor)


def _seconds_left(
    store: Store, given: Sequence[StoredAnswer], wanted: int, recent: int
) -> float | None:
    left = wanted - len(given)
    if left <= 0:
        return 0.0
    if not recent:
        return None
    first = min(answer.received for answer in given[-recent:])
    return left * max(store.clock.now() - first, 1.0) / recent


def _people(
    store: Store, given: Sequence[StoredAnswer], review: Review | None
) -> list[PersonStatus]:
    by_name: dict[str, list[StoredAnswer]] = {}
    for answer in given:
        by_name.setdefault(answer.person, []).append(answer)
    annotators = {} if review is None else {each.name: each for each in review.agreement.annotators}
    reasons = {} if review is None else {each.name: each for each in review.unreliable}
    with store.database.reading() as connection:
        rows = connection.execute(
            select(people, names.c.name)
            .join(names, names.c.person == people.c.id, isouter=True)
            .order_by(people.c.id)
        ).all()
        refused: dict[int, Counter[str]] = {}
        for person, reason in connection.execute(select(refusals.c.person, refusals.c.reason)):
            refused.setdefault(person, Counter())[reason] += 1
    labels = store.labels()
    status = []
    for row in rows:
        label = labels[row.id]
        own = by_name.get(label, [])
        annotator, reason = annotators.get(label), reasons.get(label)
        flags = Counter(flag for answer in own for flag in answer.flags)
        status.append(
            PersonStatus(
                row.id,
                label,
                row.pseudonym,
                row.state,
                row.stage,
                len(own) if row.state != EXCLUDED else row.answers,
                dict(refused.get(row.id, {})),
                statistics.median(answer.seconds for answer in own) if own else None,
                annotator.kappa if annotator else None,
                annotator.preferred if annotator else None,
                dict(flags),
                reason.reason if reason else None,
                reason.by if reason else None,
            )
        )
    return status


def _agreement(review: Review | None) -> Agreement:
    if review is None:
        return Agreement()
    found = review.agreement
    return Agreement(found.alpha, found.alpha_ci, found.kappa, found.kappa_ci)


def _kept(given: Sequence[StoredAnswer], review: Review | None) -> list[StoredAnswer] | None:
    """Return the answers without those of unreliable people; None if nobody is unreliable."""
    if review is None or not review.unreliable:
        return None
    dropped = {each.name for each in review.unreliable}
    return [answer for answer in given if answer.person not in dropped]


def _ranking(store: Store, given: Sequence[StoredAnswer]) -> list[RankedSystem]:
    """Rank the systems by people's ratings, if there are several systems and enough ratings."""
    from rejoinder.meta_evaluation.ranking import compare_people

    items = store.kind.rated_items(given)
    if len({item.system for item in items}) < 2:
        return []
    try:
        rankings, _ = compare_people(items)
    except RejoinderError:  # no context in which all systems were rated, yet
        return []
    return [
        RankedSystem(each.system, each.value, (each.low, each.high))
        for ranking in rankings
        for each in ranking.systems
    ]


def to_record(status: StudyStatus) -> dict[str, Any]:
    """Return the status as ``annotate status --json`` prints it."""
    from dataclasses import asdict

    return asdict(status)
