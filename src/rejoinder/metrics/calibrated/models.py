"""From the scores of metrics to a rating: isotonic curve, ordinal logistic regression, blend.

Each is a few numbers that are stored as JSON. Scores come oriented (higher is better), one row a
metric. How the numbers are found is in :mod:`rejoinder.estimation.fit_calibration`.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Numbers = Annotated[list[float], msgspec.Meta(min_length=1)]


class Isotonic(msgspec.Struct, frozen=True, tag="isotonic"):
    """A curve that never falls, linear between its knots and constant outside of them."""

    scores: Numbers
    ratings: Numbers

    metrics = 1

    def problem(self) -> str | None:
        """Return what is wrong with the stored numbers; None if nothing is."""
        if len(self.scores) != len(self.ratings):
            return "an isotonic curve needs as many ratings as scores"
        if _falls(self.scores, strictly=True) or _falls(self.ratings):
            return "an isotonic curve must rise"
        return None

    def predict(self, scores: Floats) -> Floats:
        """[1, n] → [n] expected ratings."""
        return np.asarray(np.interp(scores[0], self.scores, self.ratings))


class Ordinal(msgspec.Struct, frozen=True, tag="ordinal"):
    """Proportional odds: P(rating ≤ level k) = 1 / (1 + exp(slope · (score - centre) / spread -
    threshold k)) (McCullagh 1980)."""

    centre: float
    spread: float
    slope: float
    thresholds: Numbers
    """One less than levels."""
    levels: Numbers

    metrics = 1

    def problem(self) -> str | None:
        """Return what is wrong with the stored numbers; None if nothing is."""
        if len(self.levels) != len(self.thresholds) + 1:
            return "there must be one threshold less than levels"
        if _falls(self.thresholds) or _falls(self.levels, strictly=True) or self.spread <= 0:
            return "thresholds and levels must rise, and the spread be above 0"
        return None

    def predict(self, scores: Floats) -> Floats:
        """[1, n] → [n] expected ratings."""
        return np.asarray(self.probabilities(scores[0]) @ np.array(self.levels))

    def probabilities(self, scores: Floats) -> Floats:
        """[n] → [n, levels] probability of each level."""
        from scipy.special import expit

        place = self.slope * (scores - self.centre) / self.spread
        below = expit(np.array(self.thresholds) - place[:, np.newaxis])
        edge = np.zeros((len(scores), 1))
        return np.asarray(np.diff(np.hstack([edge, below, edge + 1]), axis=1))


class Ranks(msgspec.Struct, frozen=True):
    """The share of a set's scores below each of some scores, to put other scores in its order."""

    scores: Numbers
    shares: Numbers

    def of(self, scores: Floats) -> Floats:
        """Return where scores stand among those of the set, from -.5 (lowest) to .5 (highest)."""
        return np.asarray(np.interp(scores, self.scores, self.shares) - 0.5)


class Blend(msgspec.Struct, frozen=True, tag="blend"):
    """A weighted sum of the ranks of several metrics."""

    ranks: list[Ranks]
    weights: list[float]
    """Change of the rating from the lowest to the highest score of each metric."""
    intercept: float

    @property
    def metrics(self) -> int:
        return len(self.ranks)

    def problem(self) -> str | None:
        """Return what is wrong with the stored numbers; None if nothing is."""
        if not self.ranks or len(self.ranks) != len(self.weights):
            return "a blend needs a weight for each metric"
        for each in self.ranks:
            if len(each.scores) != len(each.shares) or _falls(each.scores, strictly=True):
                return "the ranks of a metric must have rising scores, each with its share"
        return None

    def predict(self, scores: Floats) -> Floats:
        """[metrics, n] → [n] expected ratings."""
        ranked = np.array([each.of(row) for each, row in zip(self.ranks, scores, strict=True)])
        return np.asarray(self.intercept + np.array(self.weights) @ ranked)


Model: TypeAlias = Isotonic | Ordinal | Blend


def _falls(values: list[float], *, strictly: bool = False) -> bool:
    """Return whether values fall somewhere; ``strictly``: or stay the same."""
    steps = np.diff(values)
    return bool((steps <= 0).any() if strictly else (steps < 0).any())
