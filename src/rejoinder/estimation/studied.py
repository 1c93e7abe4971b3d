"""What is known of a study before it goes on: its units, their cost, and how ratings vary."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rejoinder.estimation.estimates import CONFIDENCE, rated_replies
from rejoinder.estimation.people import single_ratings
from rejoinder.estimation.planning import Question, Units
from rejoinder.estimation.prediction_powered import Floats, Ints, Target
from rejoinder.estimation.sample_size import Columns, Dialogues, Spread, Study, spread_of
from rejoinder.items import Item

SQRT2 = math.sqrt(2)
ASSUMED_SD = 1.0
"""Standard deviation of replies' ratings where none are known, as on scales from 1 to 5."""
ASSUMED_CORRELATION = 0.0
"""Of scores with ratings where none are known: that people are needed as if there were none."""


def study_of(
    items: Sequence[Item],
    scores: Floats | None,
    units: Units,
    systems: Sequence[str],
    question: Question,
    *,
    ratings: int = 1,
    target: Target = "contexts",
    confidence: float = CONFIDENCE,
) -> tuple[Study, int]:
    """Return what is known of the units, and how many of them are rated."""
    replies, _ = rated_replies(items)
    score = np.zeros(len(items)) if scores is None else _filled(scores, replies.system)
    pairs = question != "mean"
    first = [members[0] for members in units.members]
    group = replies.context[first]
    columns = Columns(replies.system, replies.rating, score)
    spread = spread_of(units.members, columns, group, pairs=pairs)
    is_rated = np.array([not np.isnan(replies.rating[own]).all() for own in units.members])
    if not pairs:  # each system has its own dialogues
        group = group * (replies.systems + 1) + replies.system[first]
    _, number = np.unique(group, return_inverse=True)
    parts = 1 if pairs else len(systems)
    dialogues = Dialogues(np.bincount(number), np.bincount(number, is_rated).astype(int), parts)
    rated = int(is_rated.sum())
    count, cost = len(units), sum(map(len, units.members)) / len(units) * ratings
    if not pairs:  # each system has its own replies
        count, rated, cost = count // len(systems), rated // len(systems), cost * len(systems)
    sd = _assumed([items[n] for members in units.members for n in members])
    known = spread or Spread(sd * (SQRT2 if pairs else 1.0), ASSUMED_CORRELATION, 0)
    alone = dialogues.units.max() == 1
    return Study(count, cost, known, target, confidence, None if alone else dialogues), rated


def _assumed(items: Sequence[Item]) -> float:
    """Return the standard deviation of replies' ratings that is assumed: that of the few single
    ratings, of whatever systems."""
    known = [rating for item in items for rating in single_ratings(item)]
    return float(np.std(known, ddof=1)) if len(set(known)) > 1 else ASSUMED_SD


def _filled(scores: Floats, system: Ints) -> Floats:
    """Return the scores, those that are missing as the mean of the system."""
    known = ~np.isnan(scores)
    count = np.bincount(system, known)
    total = np.bincount(system, np.where(known, scores, 0.0))
    return np.where(known, scores, (total / np.maximum(count, 1))[system])
