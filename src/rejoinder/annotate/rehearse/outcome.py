"""What a rehearsal shows: what was planted, and what came out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rejoinder.annotate.rehearse.kinds.behaviour import Estimate
from rejoinder.annotate.rehearse.people import Manner
from rejoinder.annotate.status import PersonStatus

HALF = 0.5
"""Share of a person's answers with a remark from which on the person counts as found."""
MIN_REMARKS = 3
"""Fewer remarks are not held against a person."""
DISTRACTORS, KAPPA, TEST = "distractors", "kappa", "entrance test"
TOO_FAST, PASTED, REFUSED = "too fast", "pasted", "refused"
EVIDENCE = {
    Manner.CARELESS: {DISTRACTORS, KAPPA, TEST, REFUSED},
    Manner.FAST: {TOO_FAST},
    Manner.PASTING: {PASTED},
    Manner.CAREFUL: set[str](),
}
"""What shows that a person takes part in this manner."""


@dataclass(frozen=True)
class RehearsedPerson:
    """A simulated person, and what the study shows about them."""

    name: str
    manner: str
    answers: int
    hours: float
    """Time that their answers took."""
    kappa: float | None
    found_by: list[str]
    """Evidence against the person: kappa, distractors, too fast, pasted, refused, entrance test."""


@dataclass(frozen=True)
class Detection:
    """How well people of one manner were found."""

    manner: str
    people: int
    found: int
    recall: float | None
    """Share of these people who were found; None if there were none."""
    precision: float | None
    """Share of those who were found by this evidence who are such people; None if nobody was."""


@dataclass(frozen=True)
class RehearsedSystem:
    """Mean of a system: as planted, and as people's answers say."""

    system: str
    planted: float
    found: float


@dataclass(frozen=True)
class Agreement:
    """Krippendorff's alpha of the people."""

    planted: float | None
    """Of the careful people, if each had answered everything."""
    careful: float | None
    """Of the careful people, from their answers."""
    careful_ci: tuple[float, float] | None
    everyone: float | None
    without_unreliable: float | None
    """Without the people who would be left out; None if nobody would."""


@dataclass(frozen=True)
class Rehearsal:
    """Everything that a rehearsal found out."""

    kind: str
    database: str
    people: list[RehearsedPerson]
    tasks: int
    complete: int
    """Tasks with all answers that are wanted."""
    answers: int
    """Answers to tasks of the main phase that are stored."""
    wanted: int
    over: int
    """Tasks with more answers than are wanted."""
    acknowledged: int
    """Answers that the server said it has stored, also those of training round and test."""
    lost: int
    """Acknowledged answers that are not in the database."""
    sent_again: int
    """Answers that were sent twice; each is stored once."""
    refused: int
    repeats: int
    """Written answers that repeated something on purpose."""
    repeats_refused: int
    agreement: Agreement
    correlation: float | None
    """Of what the answers say about replies with what was planted."""
    correlation_without_unreliable: float | None
    systems: list[RehearsedSystem]
    detection: list[Detection]
    hours: float
    """Work of all people together."""
    hours_longest: float
    """Work of the person who worked longest."""
    seconds: float
    """Duration of the rehearsal."""
    latency: dict[str, float]
    """Seconds from sending an answer to the next page: median, 95 % and 99 %."""
    errors: list[str]


def evidence(person: PersonStatus) -> list[str]:
    """Return what the study shows against a person."""
    found = []
    if person.unreliable:
        found.append(DISTRACTORS if "distractor" in person.unreliable else KAPPA)
    if person.stage == "failed":
        found.append(TEST)
    remarks = {
        TOO_FAST: person.flags.get("too_fast", 0),
        PASTED: person.flags.get("pasted", 0),
        REFUSED: sum(person.refused.values()),
    }
    limit = max(MIN_REMARKS, HALF * person.answers)
    return found + [name for name, count in remarks.items() if count >= limit]


def detect(people: Sequence[RehearsedPerson]) -> list[Detection]:
    """Return how well each sort of people was found."""
    made = []
    for manner, signs in EVIDENCE.items():
        such = [person for person in people if person.manner == manner]
        if not such or not signs:
            continue
        found = [person for person in people if signs & set(person.found_by)]
        right = sum(person.manner == manner for person in found)
        made.append(
            Detection(
                manner,
                len(such),
                right,
                right / len(such),
                right / len(found) if found else None,
            )
        )
    return made


def correlation(estimates: Sequence[Estimate]) -> float | None:
    """Return Pearson's correlation of what was found with what was planted."""
    table = np.array([[each.planted, each.found] for each in estimates])
    if len(table) < 3 or not table.std(axis=0).all():
        return None
    return float(np.corrcoef(table.T)[0, 1])


def by_system(estimates: Sequence[Estimate]) -> list[RehearsedSystem]:
    """Return the mean of each system, the best first; [] if there is only one."""
    systems: dict[str, list[Estimate]] = {}
    for each in estimates:
        systems.setdefault(each.system, []).append(each)
    if len(systems) < 2:
        return []
    means = [
        RehearsedSystem(
            name,
            float(np.mean([each.planted for each in own])),
            float(np.mean([each.found for each in own])),
        )
        for name, own in systems.items()
    ]
    return sorted(means, key=lambda each: -each.planted)
