"""Intervals of statistics that are computed from sums over items, resampled by context."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rejoinder.meta_evaluation.annotators import Resampling
from rejoinder.meta_evaluation.correlate import Estimate, draw_counts, percentiles

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Finish = Callable[[Floats], Floats]
"""From sums [..., d] to values [...]; NaN where undefined."""


def estimate_of_sums(
    rows: Floats, contexts: Ints, finish: Finish, resampling: Resampling
) -> Estimate:
    """Return the value of the summed rows [n, d] with its 95 % interval.

    Rows of one context are drawn together. With a single context there is no interval.
    """
    number = np.unique(contexts, return_inverse=True)[1]
    units = int(number.max()) + 1 if number.size else 0
    sums = np.zeros((units, rows.shape[1]))
    np.add.at(sums, number, rows)
    with np.errstate(all="ignore"):
        value = float(finish(sums.sum(axis=0)))
        if not np.isfinite(value):
            return Estimate()
        if units < 2 or not resampling.resamples:
            return Estimate(value)
        rng = np.random.default_rng(resampling.seed)
        drawn = [
            finish(counts.astype(np.float64) @ sums)
            for counts in draw_counts(rng, units, resampling.resamples, 8 * rows.shape[1])
        ]
    return Estimate(value, None, *percentiles(np.concatenate(drawn)))
