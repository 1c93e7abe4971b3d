"""Sums over items from which agreement is computed, of all items or of resamples.

A bootstrap resample of items is a row of integers: how often each item was drawn.  What alpha and
kappa need of an item adds up over items, so that a chunk of resamples is a few matrix products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rejoinder.meta_evaluation.correlate import (
    Floats,
    Integers,
    Seed,
    draw_counts,
    percentiles,
    same_length,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Level = Literal["nominal", "ordinal", "interval", "ratio"]
Numbers = NDArray[np.intp]
Interval = tuple[float, float]

BLOCK = 64


def resampled_interval(
    statistic: Callable[[Integers], Floats],
    clusters: ArrayLike,
    *,
    row_bytes: int,
    resamples: int,
    seed: Seed,
) -> Interval | None:
    """Return the 95 % interval of a statistic over items that are drawn by cluster.

    ``statistic`` turns resamples [r, items] into values [r], NaN where undefined; ``clusters``
    [items] are labels of items that are drawn together; ``row_bytes`` is the memory that a resample
    needs.  None with fewer than two clusters, or if more than half of the values are undefined.
    """
    labels = np.unique(np.asarray(clusters), return_inverse=True)[1]
    units = int(labels.max(initial=-1)) + 1
    if units < 2 or resamples == 0:
        return None
    rng = np.random.default_rng(seed)
    chunks = draw_counts(rng, units, resamples, row_bytes + 8 * labels.size)
    low, high = percentiles(np.concatenate([statistic(drawn[:, labels]) for drawn in chunks]))
    return None if low is None or high is None else (low, high)


def cluster_labels(clusters: ArrayLike | None, items: int) -> NDArray[np.generic]:
    """Return the labels of the clusters [items]; without clusters each item is its own."""
    if clusters is None:
        return np.arange(items)
    labels = np.asarray(clusters)
    if labels.ndim != 1:
        raise ValueError(f"clusters: expected 1 dimension(s), got {labels.ndim}")
    same_length("clusters", labels.size, "ratings", items)
    return labels


@dataclass(frozen=True)
class RatedItems:
    """The items with at least two ratings, as Krippendorff's alpha needs them."""

    level: Level
    kept: Numbers
    """[items] their columns in the table of ratings."""
    values: Floats
    """[values] the different ratings, in ascending order."""
    counts: csr_array
    """[items, values] how often an item has each value."""
    sizes: Floats
    """[items] number of ratings."""
    within: Floats | None
    """[items] summed squared distance of the ordered pairs of an item's ratings, by the number of
    ratings - 1.  None for ordinal ratings, whose distances depend on all ratings."""

    @classmethod
    def of(cls, table: Floats, level: Level) -> RatedItems:
        """Prepare ratings [annotators, items] with NaN where an annotator did not rate."""
        from scipy.sparse import csr_array

        # sparse (item, value) pairs: there may be thousands of annotators with few ratings each
        item, annotator = np.nonzero(~np.isnan(table.T))
        several = np.bincount(item, minlength=table.shape[1]) >= 2
        ratings = table[annotator, item][several[item]]
        kept, item = np.unique(item[several[item]], return_inverse=True)
        values, codes = np.unique(ratings, return_inverse=True)
        shape = kept.size, values.size
        counts = csr_array((np.ones(ratings.size), (item, codes)), shape=shape)
        sizes = np.bincount(item, minlength=kept.size).astype(np.float64)
        within = None
        if level == "nominal":
            equal = np.asarray(counts.power(2).sum(axis=1)).ravel()
            within = (sizes**2 - equal) / (sizes - 1)
        elif level == "interval":
            within = _squares_within(item, ratings, sizes)
        elif level == "ratio":
            if (ratings < 0).any():
                raise ValueError("a ratio scale has no negative values")
            within = _ratios_within(item, ratings, sizes)
        elif level != "ordinal":
            raise ValueError(
                f"unknown level {level!r}: expected nominal, ordinal, interval or ratio"
            )
        return cls(level, kept, values, counts, sizes, within)

    @property
    def row_bytes(self) -> int:
        """Memory that a resample needs."""
        return 8 * 4 * (self.sizes.size + self.values.size)

    def alphas(self, drawn: Integers) -> Floats:
        """Return alpha of resamples [r, items]; NaN where fewer than two values were drawn."""
        weights = drawn.T.astype(np.float64)
        margins = np.asarray(self.counts.T @ weights).T
        total = margins.sum(axis=1)
        if self.within is None:
            ranks = np.cumsum(margins, axis=1) - margins / 2
            observed = (weights * self._ranks_within(ranks)).sum(axis=0)
            expected = _squares_expected(ranks, margins, total)
        else:
            observed = weights.T @ self.within
            expected = self._expected(margins, total)
        alphas = np.full(len(drawn), np.nan)
        several = np.count_nonzero(margins, axis=1) >= 2
        np.divide((total - 1) * observed, expected, out=alphas, where=several)
        return 1 - alphas

    def _ranks_within(self, ranks: Floats) -> Floats:
        """Return ``within`` of each resample's ranks [r, values], [items, r].

        The sum over all ordered pairs of m numbers is 2 m times the sum of squares around their
        mean.  Ranks are halves of integers, so that equal ratings give exactly 0.
        """
        sums, squares = self.counts @ ranks.T, self.counts @ (ranks**2).T
        sizes = self.sizes[:, np.newaxis]
        return np.asarray(2 * sizes / (sizes - 1) * (squares - sums**2 / sizes))

    def _expected(self, margins: Floats, total: Floats) -> Floats:
        if self.level == "nominal":
            return np.asarray(total**2 - (margins**2).sum(axis=1))
        if self.level == "interval":
            return _squares_expected(self.values, margins, total)
        expected = np.zeros(len(margins))
        for begin in range(0, self.values.size, BLOCK):
            block = slice(begin, begin + BLOCK)
            squares = _ratio_squares(self.values[block, np.newaxis], self.values)
            expected += ((margins @ squares.T) * margins[:, block]).sum(axis=1)
        return expected


def _squares_within(item: Numbers, values: Floats, sizes: Floats) -> Floats:
    """Return the squared distances within each item, around its mean."""
    centred = values - values.mean() if values.size else values
    means = np.bincount(item, centred, sizes.size) / sizes
    squares = np.bincount(item, (centred - means[item]) ** 2, sizes.size)
    return np.asarray(2 * sizes / (sizes - 1) * squares)


def _squares_expected(values: Floats, margins: Floats, total: Floats) -> Floats:
    """Return the squared distances of all ordered pairs of values [r, values] or [values]."""
    means = (margins * values).sum(axis=1) / np.maximum(total, 1)
    return np.asarray(2 * total * (margins * (values - means[:, np.newaxis]) ** 2).sum(axis=1))


def _ratios_within(item: Numbers, values: Floats, sizes: Floats) -> Floats:
    left, right = rating_pairs(item)
    squares = 2 * _ratio_squares(values[left], values[right])
    return np.asarray(np.bincount(item[left], squares, sizes.size) / (sizes - 1))


def _ratio_squares(a: Floats, b: Floats) -> Floats:
    sums = a + b
    return np.asarray(((a - b) / np.where(sums == 0, 1.0, sums)) ** 2)


def rating_pairs(item: Numbers) -> tuple[Numbers, Numbers]:
    """Return the places of all pairs of ratings of the same item; ratings are sorted by item.

    Pairs are visited by their distance in the sorted list.
    """
    lefts, rights = [np.zeros(0, np.intp)], [np.zeros(0, np.intp)]
    left, distance = np.arange(item.size), 0
    while left.size:
        distance += 1
        left = left[left + distance < item.size]
        left = left[item[left] == item[left + distance]]
        lefts.append(left)
        rights.append(left + distance)
    return np.concatenate(lefts), np.concatenate(rights)


@dataclass(frozen=True)
class PairSums:
    """Additive statistics of each two annotators, by item."""

    table: csr_array
    """[statistics * pairs, items]"""
    width: int
    """Number of statistics."""

    @classmethod
    def of(
        cls, pair: Numbers, item: Numbers, statistics: Sequence[NDArray[np.float64]], items: int
    ) -> PairSums:
        """Gather ``statistics``, columns with a row for each item and pair of annotators."""
        from scipy.sparse import csr_array

        pairs = int(pair.max(initial=-1)) + 1
        rows = np.concatenate([pair + number * pairs for number in range(len(statistics))])
        columns = np.tile(item, len(statistics))
        shape = pairs * len(statistics), items
        table = csr_array((np.concatenate(statistics), (rows, columns)), shape=shape)
        return cls(table, len(statistics))

    @property
    def row_bytes(self) -> int:
        """Memory that a resample needs."""
        return 8 * 3 * int(self.table.shape[0])

    def drawn(self, drawn: Integers) -> Floats:
        """Return the sums of resamples [r, items] as [statistics, pairs, r]."""
        sums = np.asarray(self.table @ drawn.T.astype(np.float64))
        return sums.reshape(self.width, -1, len(drawn))


def mean_over_pairs(values: Floats) -> Floats:
    """Return the mean over pairs of annotators [pairs, r] without NaN; NaN if all are."""
    defined = ~np.isnan(values)
    count = defined.sum(axis=0)
    means = np.full(values.shape[1], np.nan)
    np.divide(np.where(defined, values, 0.0).sum(axis=0), count, out=means, where=count > 0)
    return means
