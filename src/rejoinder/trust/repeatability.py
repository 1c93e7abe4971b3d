"""Repeatability: does a judge say the same when it is asked again?

    ICC = (B - W) / (B + (k - 1) W),    B = k / (n - 1) Σ (m_i - m)²,
                                        W = 1 / (n (k - 1)) Σ Σ (x_ij - m_i)²

the one-way intraclass correlation of k runs over n replies with means m_i (Shrout & Fleiss 1979,
ICC(1,1)): the share of the variance of one run's scores that belongs to the replies. That of the
mean of k runs follows as k ICC / (1 + (k - 1) ICC) (Spearman 1910; Brown 1910).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoinder.meta_evaluation.annotators import Resampling
from rejoinder.meta_evaluation.correlate import Estimate
from rejoinder.trust.resampled import estimate_of_sums

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MIN_REPLIES = 3
SAME = 1e-9


@dataclass(frozen=True)
class Repeatability:
    """Agreement of a judge with itself."""

    runs: int
    n: int
    icc: Estimate
    """Of one run."""
    icc_of_mean: float | None
    """Of the mean of the runs; None where it is undefined."""
    deviation: float
    """Standard deviation of a score from run to run."""
    same: float | None
    """Share of replies with the same score in all runs; None if only deviations are known."""


def repeatability(runs: Floats, contexts: Ints, resampling: Resampling) -> Repeatability | None:
    """Compare runs [k, n]; NaN is unscored. None with fewer than three replies that all scored."""
    both = np.flatnonzero(~np.isnan(runs).any(axis=0))
    if len(both) < MIN_REPLIES:
        return None
    scored = runs[:, both]
    means = scored.mean(axis=0)
    within = ((scored - means) ** 2).sum(axis=0)
    same = float((np.ptp(scored, axis=0) <= SAME).mean())
    return _of_sums(len(runs), means, within, contexts[both], resampling, same)


def repeatability_of_answers(
    means: Floats, deviations: Floats, answers: Floats, contexts: Ints, resampling: Resampling
) -> Repeatability | None:
    """Compare the answers behind each score: their standard ``deviations`` (n - 1) are known.

    Replies with fewer answers than most have are left out. None if there is one answer each.
    """
    known = np.flatnonzero(~np.isnan(means) & ~np.isnan(deviations))
    if not known.size or (k := int(answers[known].max())) < 2:
        return None
    full = known[answers[known] == k]
    if len(full) < MIN_REPLIES:
        return None
    within = deviations[full] ** 2 * (k - 1)
    return _of_sums(k, means[full], within, contexts[full], resampling, None)


def _of_sums(
    k: int,
    means: Floats,
    within: Floats,
    contexts: Ints,
    resampling: Resampling,
    same: float | None,
) -> Repeatability:
    centred = means - means.mean()
    rows = np.array([np.ones(len(means)), centred, centred**2, within]).T

    def finish(sums: Floats) -> Floats:
        n, mean, squares, within = np.moveaxis(sums, -1, 0)
        between = k * (squares - mean**2 / n) / (n - 1)
        rest = within / (n * (k - 1))
        return np.asarray((between - rest) / (between + (k - 1) * rest))

    icc = estimate_of_sums(rows, contexts, finish, resampling)
    one = icc.value
    of_mean = None if one is None or one <= 0 else k * one / (1 + (k - 1) * one)
    deviation = float(np.sqrt(within.sum() / (len(means) * (k - 1))))
    return Repeatability(k, len(means), icc, of_mean, deviation, same)
