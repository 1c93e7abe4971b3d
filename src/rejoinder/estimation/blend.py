"""Fit a blend of several metrics with few ratings, drawn towards the blend without any.

    rating = a + c · p(reply) + Σⱼ δⱼ uⱼ(reply)         p = Σⱼ πⱼ uⱼ
    minimise  mean squared error + λ · Σⱼ δⱼ² var uⱼ

uⱼ is the rank of the score of metric j among all replies, rated or not, from -.5 to .5. p is what
is believed without ratings: all metrics count the same, or only those that the user names. The
ratings first decide two numbers, a and c ≥ 0; how far the weights leave p is decided by λ, which is
chosen by cross-validation over contexts: the largest within one standard error of the best, with
λ = ∞ (p alone) among the choices. So a handful of ratings changes little, and many change as much
as they support.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rejoinder.estimation.folds import folds_of
from rejoinder.estimation.rated_scores import Floats, Ints, RatedScores
from rejoinder.metrics.calibrated.models import Blend, Ranks

PENALTIES = (np.inf, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.0)
MAX_KNOTS = 101
FOLDS = 5


def fit_blend(rated: RatedScores, prior: Sequence[str] = ()) -> Blend:
    """Return the blend of all metrics; ``prior`` names those that count without ratings."""
    scales = [ranks(row) for row in rated.everything]
    ranked = np.array([scale.of(row) for scale, row in zip(scales, rated.scores, strict=True)])
    believed = np.array([not prior or name in prior for name in rated.metrics], float)
    believed /= believed.sum()
    penalty = best_penalty(ranked, rated.ratings, rated.context, believed)
    intercept, weights = ridge(ranked, rated.ratings, believed, penalty)
    return Blend(scales, weights.tolist(), intercept)


def ranks(scores: Floats) -> Ranks:
    """Return the share of scores below each, of equal ones half; at most MAX_KNOTS of them."""
    known = scores[~np.isnan(scores)]
    values, count = np.unique(known, return_counts=True)
    shares = (np.cumsum(count) - count / 2) / len(known)
    if len(values) > MAX_KNOTS:
        grid = np.linspace(0, len(values) - 1, MAX_KNOTS)
        kept = np.unique(np.rint(grid).astype(int))
        values, shares = values[kept], shares[kept]
    return Ranks(values.tolist(), shares.tolist())


def ridge(
    ranked: Floats, ratings: Floats, believed: Floats, penalty: float
) -> tuple[float, Floats]:
    """Return intercept and weights for ranks [metrics, n], drawn towards ``believed``."""
    centre, mean = ranked.mean(axis=1), float(ratings.mean())
    inputs, target = ranked - centre[:, np.newaxis], ratings - mean
    belief = believed @ inputs
    slope = max(float(belief @ target) / max(float(belief @ belief), 1e-12), 0.0)
    weights = slope * believed
    if np.isfinite(penalty):
        count = len(ratings)
        # the belief's own slope is not penalised: it is another column, without penalty
        columns = np.vstack([belief, inputs])
        gram = columns @ columns.T / count
        gram[1:, 1:] += penalty * np.diag(inputs.var(axis=1))
        gram[np.diag_indices_from(gram)] += 1e-9 * max(float(np.trace(gram)), 1e-12)
        solved = np.linalg.solve(gram, columns @ target / count)
        if solved[0] < 0:  # ratings can't turn the belief around: only its parts may lose weight
            solved = np.concatenate([[0.0], np.linalg.solve(gram[1:, 1:], inputs @ target / count)])
        weights = solved[0] * believed + solved[1:]
    return mean - float(weights @ centre), weights


def best_penalty(ranked: Floats, ratings: Floats, context: Ints, believed: Floats) -> float:
    """Return the largest penalty whose cross-validated error is within one standard error of the
    smallest."""
    groups = len(np.unique(context))
    if groups < 4 or len(ranked) == 1:
        return float("inf")
    fold = folds_of(context, min(FOLDS, groups), seed=0)
    errors = np.zeros((len(PENALTIES), len(ratings)))
    for number in range(fold.max() + 1):
        learn, test = fold != number, fold == number
        for row, penalty in enumerate(PENALTIES):
            intercept, weights = ridge(ranked[:, learn], ratings[learn], believed, penalty)
            errors[row, test] = (ratings[test] - intercept - weights @ ranked[:, test]) ** 2
    best = int(errors.mean(axis=1).argmin())
    # contexts are independent, replies to one are not
    worse = errors - errors[best]
    sums = np.array([np.bincount(context, row, context.max() + 1) for row in worse])
    spread = np.sqrt((sums**2).sum(axis=1)) / len(ratings)
    within = worse.mean(axis=1) <= spread
    within[best] = True
    return PENALTIES[int(np.flatnonzero(within)[0])]
