"""What some ratings and the scores of all replies say of the systems of a report."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from rejoinder.errors import DataError
from rejoinder.estimation.estimates import Estimates, estimate_systems, standard_scores
from rejoinder.estimation.planning import (
    Question,
    asked_about,
    choose,
    ratings_until,
    unit_sizes,
    units_of,
)
from rejoinder.estimation.sample_size import Needed, Study
from rejoinder.estimation.studied import study_of
from rejoinder.items import Item
from rejoinder.meta_evaluation.join import Floats
from rejoinder.reporting.page.report_data import ReportData

NEXT = 10
"""Replies to rate next that are listed."""
HALF = 0.5


@dataclass(frozen=True)
class FewRatings:
    """What some ratings and scores of all replies say of the systems."""

    estimates: Estimates | None
    """None if ratings are too few or unusable; ``missing`` says why."""
    missing: str
    question: Question
    study: Study | None
    rated_units: int
    halved: Needed | None
    """Ratings for intervals half as wide as now."""
    next: list[int]
    """Numbers of the replies that a plan asks for first."""


def few_ratings(data: ReportData, seed: int) -> FewRatings | None:
    """Return estimates by the ranking metric and the next replies; None if no reply is rated, or
    all are."""
    rated = ~np.isnan(data.joined.human)
    if not rated.any() or rated.all():
        return None
    items = list(data.items)
    scores = standard_scores(data.joined, [data.metric])
    estimates, missing = None, ""
    try:
        estimates = estimate_systems(items, scores, [data.metric], seed=seed)
    except DataError as error:
        missing = f"{error}"
    systems, question = asked_about(items, (), None)
    units = units_of(items, question, systems)
    study, count = study_of(items, scores, units, systems, question)
    halved = None
    if count > 1 and study.spread.known_from:
        wanted = HALF * study.width(count)
        more = partial(
            ratings_until,
            items,
            units,
            np.ones(len(units)),
            of_each=question == "mean",
            ratings=1,
            seed=seed,
        )
        halved = study.needed(lambda n: study.width(n) <= wanted, more)
    return FewRatings(
        estimates, missing, question, study, count, halved, _next(items, scores, question, seed)
    )


def _next(items: list[Item], scores: Floats, question: Question, seed: int) -> list[int]:
    """Return the replies that ``plan`` with the same seed chooses first."""
    systems, _ = asked_about(items, (), question)
    units = units_of(items, question, systems)
    sizes = unit_sizes(units, scores[np.newaxis], 0.0)
    largest = max(map(len, units.members))
    planned = choose(items, units, sizes, NEXT + largest, ratings=1, seed=seed)
    return planned.chosen[:NEXT]
