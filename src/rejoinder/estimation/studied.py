"""What is known of a study before it goes on: its units, their cost, and how ratings vary."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rejoinder.estimation.estimates import CONFIDENCE, rated_replies
from rejoinder.estimation.planning import Question, Units
from rejoinder.estimation.prediction_powered import Floats, Ints, Target
from rejoinder.estimation.sample_size import Columns, Spread, Study, spread_of
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
    spread = spread_of(units.members, Columns(replies.system, replies.rating, score), pairs=pairs)
    rated = sum(not np.isnan(replies.rating[members]).all() for members in units.members)
    count, cost = len(units), sum(map(len, units.members)) / len(units) * ratings
    if not pairs:  # each system has its own replies
        count, rated, cost = count // len(systems), rated // len(systems), cost * len(systems)
    known = spread or Spread(ASSUMED_SD * (SQRT2 if pairs else 1.0), ASSUMED_CORRELATION, 0)
    return Study(count, cost, known, target, confidence), rated


def _filled(scores: Floats, system: Ints) -> Floats:
    """Return the scores, those that are missing as the mean of the system."""
    known = ~np.isnan(scores)
    count = np.bincount(system, known)
    total = np.bincount(system, np.where(known, scores, 0.0))
    return np.where(known, scores, (total / np.maximum(count, 1))[system])
