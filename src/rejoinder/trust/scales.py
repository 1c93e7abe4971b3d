"""The scale of people's ratings, and scores brought to it.

A judge whose rubric has the scale of the ratings is taken as it is. Any other metric is mapped to
the ratings by an isotonic curve that was fitted to other contexts (cross-fitting), so that no
reply's own rating decides its value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoinder.estimation.folds import folds_of
from rejoinder.estimation.isotonic import isotonic_curve
from rejoinder.estimation.people import single_ratings
from rejoinder.items import Item
from rejoinder.judges.scale import Scale
from rejoinder.meta_evaluation.ranking import higher_is_better

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FOLDS = 5
ON_THE_SCALE_OF_PEOPLE = "calibrated"
"""The metric whose scores are ratings as people would give them."""


@dataclass(frozen=True)
class HumanScale:
    """The lowest and the highest rating of people, and all values in between that they used."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, items: Sequence[Item]) -> HumanScale | None:
        """Return the scale of all single ratings; None if there are no two different ones."""
        used = {rating for item in items for rating in single_ratings(item)}
        return cls(tuple(sorted(used))) if len(used) > 1 else None

    @property
    def low(self) -> float:
        return self.values[0]

    @property
    def high(self) -> float:
        return self.values[-1]

    def is_of(self, metric: str, signature: str) -> bool:
        """Return whether the scores of a metric are on this scale."""
        if metric.partition("(")[0] == ON_THE_SCALE_OF_PEOPLE:
            return True
        own = scale_of(signature)
        return own is not None and (own.low, own.high) == (self.low, self.high)

    def nearest(self, values: Floats) -> Floats:
        """Return the nearest ratings that people used; the lower one of two."""
        used = np.array(self.values)
        between = (used[1:] + used[:-1]) / 2
        return np.asarray(used[np.searchsorted(between, values)])


def scale_of(signature: str) -> Scale | None:
    """Return the scale of a judge, which its signature has; None for other metrics."""
    for part in signature.split("|"):
        key, _, value = part.partition(":")
        if key == "scale":
            try:
                return Scale.parse(value)
            except ValueError:
                return None
    return None


def cross_fitted(
    metric: str, scores: Floats, human: Floats, contexts: Ints, seed: int
) -> Floats | None:
    """Return the scores as ratings, by curves from other contexts; NaN where score or rating is
    missing.

    None if there are fewer than two contexts to learn from.
    """
    known = np.flatnonzero(~np.isnan(scores) & ~np.isnan(human))
    groups = np.unique(contexts[known])
    if len(groups) < 2:
        return None
    fold = folds_of(contexts[known], min(FOLDS, len(groups)), seed)
    oriented = scores[known] if higher_is_better(metric) else -scores[known]
    mapped = np.full(len(scores), np.nan)
    for number in range(int(fold.max()) + 1):
        learn, own = fold != number, fold == number
        curve = isotonic_curve(oriented[learn], human[known][learn])
        mapped[known[own]] = curve.predict(oriented[own][np.newaxis])
    return mapped
