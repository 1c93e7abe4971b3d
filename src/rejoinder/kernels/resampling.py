"""Correlations of bootstrap resamples, computed from counts.

A resample of n items is a row of n integers: how often each item was drawn.  Every correlation
below is computed from those counts alone, and equals the plain statistic on the array in which
each item is repeated that often.  The order of the values, and which values are equal, do not
change between resamples, and are computed once by the caller:

- ``columns`` [m, n]: the values of m metrics
- ``codes`` [m, n]: the dense rank of each value within its column, 0 for the smallest
- ``orders`` [m, n]: the items of each column, smallest value first
- ``counts`` [r, n]: the resamples

Each kernel returns [m, r], with NaN wherever either side is constant in the resample.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels.compiled import regrouped

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]


@regrouped
def _constant(counts: Integers, values: NDArray[Any]) -> bool:
    """Return whether all drawn items have the same value; a variance would only be near 0."""
    first = -1
    for i in range(counts.size):
        if counts[i] > 0:
            if first < 0:
                first = i
            elif values[i] != values[first]:
                return False
    return True


@regrouped
def _ratio(covariance: float, variance_a: float, variance_b: float) -> float:
    """Return a correlation within [-1, 1]; NaN if a variance is 0 or underflows."""
    scale = np.sqrt(variance_a) * np.sqrt(variance_b)
    if not scale > 0.0:
        return np.nan
    return float(min(1.0, max(-1.0, covariance / scale)))


@regrouped
def pearson(counts: Integers, columns: Floats, human: Floats) -> Floats:
    """Pearson's r from weighted moments, centred on the mean of each resample.

    The textbook one-pass formula loses all digits when an outlier was not drawn, hence two passes.
    """
    m, n = columns.shape
    out = np.empty((m, counts.shape[0]))
    weights = np.empty(n)
    pull = np.empty(n)
    for r in range(counts.shape[0]):
        total = 0.0
        human_mean = 0.0
        for i in range(n):
            weights[i] = counts[r, i]
            total += weights[i]
            human_mean += weights[i] * human[i]
        human_mean /= total
        human_variance = 0.0
        for i in range(n):
            distance = human[i] - human_mean
            pull[i] = weights[i] * distance
            human_variance += pull[i] * distance
        human_constant = _constant(counts[r], human)
        for c in range(m):
            if human_constant or _constant(counts[r], columns[c]):
                out[c, r] = np.nan
                continue
            mean = 0.0
            for i in range(n):
                mean += weights[i] * columns[c, i]
            mean /= total
            variance = 0.0
            covariance = 0.0
            for i in range(n):
                distance = columns[c, i] - mean
                variance += weights[i] * distance * distance
                covariance += pull[i] * distance
            out[c, r] = _ratio(covariance, variance, human_variance)
    return out


@regrouped
def spearman(counts: Integers, codes: Integers, orders: Integers, human_codes: Integers) -> Floats:
    """Spearman's rho: Pearson's r of the mid-ranks that the values have within each resample.

    With b drawn items below a value and t at it, its mid-rank is b + (t + 1) / 2.  The mean rank of
    all w drawn items is (w + 1) / 2, so twice the distance, 2 b + t - w, is a whole number, and all
    sums are exact.
    """
    m, n = codes.shape
    out = np.empty((m, counts.shape[0]))
    last = np.ones((m, n), np.bool_)
    for c in range(m):
        for position in range(n - 1):
            last[c, position] = codes[c, orders[c, position]] != codes[c, orders[c, position + 1]]
    levels = human_codes.max() + 1
    drawn = np.empty(levels)
    distances = np.empty(levels)
    pull = np.empty(n)
    for r in range(counts.shape[0]):
        drawn[:] = 0.0
        for i in range(n):
            drawn[human_codes[i]] += counts[r, i]
        total = drawn.sum()
        below = 0.0
        human_variance = 0.0
        for level in range(levels):
            distances[level] = 2.0 * below + drawn[level] - total
            human_variance += drawn[level] * distances[level] ** 2
            below += drawn[level]
        for i in range(n):
            pull[i] = counts[r, i] * distances[human_codes[i]]
        for c in range(m):
            below = 0.0
            tied = 0.0
            tied_pull = 0.0
            variance = 0.0
            covariance = 0.0
            for position in range(n):
                i = orders[c, position]
                tied += counts[r, i]
                tied_pull += pull[i]
                if last[c, position]:
                    distance = 2.0 * below + tied - total
                    variance += tied * distance * distance
                    covariance += tied_pull * distance
                    below += tied
                    tied = 0.0
                    tied_pull = 0.0
            out[c, r] = _ratio(covariance, variance, human_variance)
    return out


@regrouped
def _prefix(tree: NDArray[np.int64], level: int) -> int:
    """Return the sum of the levels of a Fenwick tree below ``level``."""
    total = 0
    while level > 0:
        total += tree[level]
        level &= level - 1
    return total


@regrouped
def _add(tree: NDArray[np.int64], level: int, amount: int) -> None:
    level += 1
    while level < tree.size:
        tree[level] += amount
        level += level & -level


@regrouped
def kendall(counts: Integers, codes: Integers, orders: Integers, human_codes: Integers) -> Floats:
    """Kendall's tau-b, (C - D) / sqrt((P - T_metric) (P - T_human)), in O(n log h) a resample.

    C and D are the concordant and discordant of the P pairs, T the pairs tied on one side; copies
    of one item are tied on both.  Items enter in the order of the metric; a Fenwick tree over the h
    distinct human values (usually few) counts how many earlier items are below and above.
    """
    m, n = codes.shape
    out = np.empty((m, counts.shape[0]))
    levels = human_codes.max() + 1
    tree = np.zeros(levels + 1, np.int64)
    level_inside = np.empty(levels, np.int64)
    drawn = np.empty(levels, np.int64)
    for r in range(counts.shape[0]):
        total = np.int64(counts[r].sum())
        pairs = total * (total - 1) // 2
        drawn[:] = 0
        for i in range(n):
            drawn[human_codes[i]] += counts[r, i]
        human_ties = np.int64(0)
        for level in range(levels):
            human_ties += drawn[level] * (drawn[level] - 1) // 2
        for c in range(m):
            tree[:] = 0
            level_inside[:] = 0
            inside = np.int64(0)
            surplus = np.int64(0)
            ties = np.int64(0)
            start = 0
            while start < n:
                stop = start
                group = np.int64(0)
                while stop < n and codes[c, orders[c, stop]] == codes[c, orders[c, start]]:
                    i = orders[c, stop]
                    if counts[r, i] > 0:
                        below = _prefix(tree, human_codes[i])
                        above = inside - below - level_inside[human_codes[i]]
                        surplus += counts[r, i] * (below - above)
                        group += counts[r, i]
                    stop += 1
                for position in range(start, stop):
                    i = orders[c, position]
                    if counts[r, i] > 0:
                        _add(tree, human_codes[i], counts[r, i])
                        level_inside[human_codes[i]] += counts[r, i]
                ties += group * (group - 1) // 2
                inside += group
                start = stop
            out[c, r] = _ratio(float(surplus), float(pairs - ties), float(pairs - human_ties))
    return out
