"""Fit an ordinal logistic regression (proportional odds; McCullagh 1980) of ratings on a score.

    log L = Σᵢ wᵢ log( F(θ_k(i) - β xᵢ) - F(θ_k(i)-1 - β xᵢ) ) - β² / (2 · PRIOR²)

F is the logistic function, x the standardised score, k the level of a rating. Each reply has the
weight 1, which its ratings share. An averaged rating between two levels counts for both: 3.4 on a
scale of whole numbers is .6 of a 3 and .4 of a 4. The prior is so wide that it only matters where
levels don't overlap at all and β would be infinite.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rejoinder.errors import DataError
from rejoinder.estimation.rated_scores import Floats, RatedScores
from rejoinder.metrics.calibrated.models import Ordinal
from rejoinder.wording import option

MAX_LEVELS = 20
PRIOR = 10.0
_SMALL = 1e-300


def fit_ordinal(rated: RatedScores, prior: float = PRIOR) -> Ordinal:
    """Return the regression on the only metric."""
    levels = rating_levels(rated.single)
    weights = level_weights(rated.single, levels)
    used = weights.sum(axis=0) > 0
    levels, weights = levels[used], weights[:, used]
    scores = rated.scores[0]
    centre, spread = float(scores.mean()), float(scores.std()) or 1.0
    slope, thresholds = _maximum((scores - centre) / spread, weights, prior)
    return Ordinal(centre, spread, slope, thresholds.tolist(), levels.tolist())


def rating_levels(single: Sequence[Sequence[float]]) -> Floats:
    """Return the levels of the scale: the ratings that occur, or whole numbers between them."""
    distinct = np.unique([rating for ratings in single for rating in ratings])
    if len(distinct) <= MAX_LEVELS:
        return distinct
    low, high = np.floor(distinct[0]), np.ceil(distinct[-1])
    if high - low >= MAX_LEVELS:
        raise DataError(
            f"the ratings have {len(distinct):,} levels from {distinct[0]:g} to {distinct[-1]:g};"
            f" an ordinal regression takes up to {MAX_LEVELS}: use"
            f" {option('method', 'isotonic')}"
        )
    return np.arange(low, high + 1)


def level_weights(single: Sequence[Sequence[float]], levels: Floats) -> Floats:
    """Return the weight of each level for each reply, [n, levels]; each row adds up to 1."""
    weights = np.zeros((len(single), len(levels)))
    for row, ratings in enumerate(single):
        for rating in ratings:
            above = min(int(np.searchsorted(levels, rating)), len(levels) - 1)
            if levels[above] == rating or above == 0:
                weights[row, above] += 1
                continue
            share = (rating - levels[above - 1]) / (levels[above] - levels[above - 1])
            weights[row, above - 1] += 1 - share
            weights[row, above] += share
        weights[row] /= len(ratings)
    return weights


def log_likelihood(
    slope: float, thresholds: Floats, x: Floats, weights: Floats, prior: float = PRIOR
) -> tuple[float, float, Floats]:
    """Return the penalised log likelihood and its derivatives by slope and thresholds."""
    from scipy.special import expit

    edge = np.full((len(x), 1), np.inf)
    ends = np.hstack([-edge, thresholds - slope * x[:, np.newaxis], edge])
    below = expit(ends)
    # of two values near 1, the difference is taken at the other end
    share = np.where(ends[:, :-1] > 0, expit(-ends[:, :-1]) - expit(-ends[:, 1:]), np.diff(below))
    share = np.maximum(share, _SMALL)
    density = below * expit(-ends)
    value = float((weights * np.log(share)).sum()) - slope**2 / (2 * prior**2)
    upper = (weights / share * density[:, 1:])[:, :-1]
    lower = (weights / share * density[:, :-1])[:, 1:]
    by_threshold = (upper - lower).sum(axis=0)
    by_slope = float(-(x[:, np.newaxis] * (upper - lower)).sum()) - slope / prior**2
    return value, by_slope, by_threshold


def _maximum(x: Floats, weights: Floats, prior: float) -> tuple[float, Floats]:
    """Return slope and thresholds of the largest likelihood.

    Thresholds are kept in order by searching for the logarithms of their distances.
    """
    from scipy.optimize import minimize

    share = np.cumsum(weights.sum(axis=0))[:-1] / weights.sum()
    start = np.log(share / (1 - share))
    first = np.concatenate([[0.0], start[:1], np.log(np.maximum(np.diff(start), 1e-6))])

    def loss(parameters: Floats) -> tuple[float, Floats]:
        gaps = np.exp(np.minimum(parameters[2:], 50))
        thresholds = parameters[1] + np.concatenate([[0.0], np.cumsum(gaps)])
        value, by_slope, by_threshold = log_likelihood(parameters[0], thresholds, x, weights, prior)
        later = np.cumsum(by_threshold[::-1])[::-1]
        return -value, -np.concatenate([[by_slope], later[:1], later[1:] * gaps])

    found = minimize(loss, first, jac=True, method="L-BFGS-B", options={"gtol": 1e-9, "ftol": 0})
    gaps = np.exp(np.minimum(found.x[2:], 50))
    return float(found.x[0]), found.x[1] + np.concatenate([[0.0], np.cumsum(gaps)])
