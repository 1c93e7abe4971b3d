"""Paired tests of systems: intervals and p-values of their values and differences.

Everything is computed from a table [systems, contexts, statistics] of additive statistics. Systems
are numbered by their rows. Where not every system answered every context, values are over the
contexts that all answered, and each pair is tested on the contexts that the two answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoinder.meta_evaluation.correlate import CHUNK_BYTES
from rejoinder.meta_evaluation.significance import (
    Finish,
    bootstrap_pairs,
    holm,
    paired_bootstrap,
    randomisation_pairs,
    randomisation_table,
    swapped_pairs,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TAILS = [0.025, 0.975]
BLOCK_BYTES = 8 * CHUNK_BYTES
"""Memory for the statistics of pairs that have contexts of their own."""


@dataclass
class PairTests:
    """Tested pairs as columns; the first system of a pair is the better one."""

    first: Ints
    second: Ints
    difference: Floats
    low: Floats
    high: Floats
    p_bootstrap: Floats
    p_randomisation: Floats
    p_margin: Floats
    """p of the baseline's difference to the other system against the margin; NaN elsewhere."""
    contexts: Ints
    """Contexts that the two systems share."""

    @property
    def p_adjusted(self) -> Floats:
        return holm(self.p_randomisation)

    def matrix(self) -> Floats:
        """Return the adjusted p-values [systems, systems], symmetric; NaN where not tested."""
        size = 1 + max(int(self.first.max(initial=0)), int(self.second.max(initial=0)))
        table = np.full((size, size), np.nan)
        table[self.first, self.second] = table[self.second, self.first] = self.p_adjusted
        return table


class SystemTests:
    """Values, intervals and tests of the systems of one ranking.

    ``answered`` [systems, contexts] says where a system has statistics, by default everywhere;
    elsewhere they must be 0.
    """

    def __init__(
        self,
        table: Floats,
        finish: Finish,
        sign: int,
        seed: int,
        *,
        answered: NDArray[np.bool_] | None = None,
    ) -> None:
        self.finish, self.sign, self.seed = finish, sign, seed
        self._all_rows = table
        self._answered = np.ones(table.shape[:2], bool) if answered is None else answered
        shared = self._answered.all(axis=0)
        self.table = table if shared.all() else table[:, shared]
        """Statistics of the contexts that all systems answered."""
        self.values: Floats = finish(self.table.sum(axis=1))
        self.ends = np.full((2, len(table)), np.nan)

    def interval(self, system: int) -> tuple[float, float]:
        return float(self.ends[0, system]), float(self.ends[1, system])

    def run(
        self, resamples: int, baseline: int | None, margin: float, *, neighbours_only: bool
    ) -> tuple[Ints, PairTests]:
        """Return the order of the systems, best first, and the tests of their pairs."""
        order = np.argsort(-self.sign * self.values, kind="stable")
        if neighbours_only:
            first, second = _neighbours(order, baseline)
        else:
            upper = np.triu_indices(len(order), 1)
            first, second = order[upper[0]], order[upper[1]]
        if not self._answered.all():
            for systems, drawn in self._bootstrap(order, None, resamples, neighbours_only):
                self.ends[:, systems] = np.quantile(drawn, TAILS, axis=0)
            return order, self._own_contexts(first, second, resamples, baseline, margin)
        if neighbours_only:
            p_values = randomisation_pairs(
                self.table, first, second, self.finish, resamples=resamples, seed=self.seed
            )
        else:
            tested = randomisation_table(
                self.table, self.finish, resamples=resamples, seed=self.seed
            )
            p_values = tested[first, second]
        difference = self.sign * self.values[first] - self.sign * self.values[second]
        low, high, p_bootstrap, p_margin = np.full((4, len(first)), np.nan)
        contexts = np.full(len(first), self.table.shape[1])
        pairs = PairTests(
            first, second, difference, low, high, p_bootstrap, p_values, p_margin, contexts
        )
        for systems, drawn in self._bootstrap(order, baseline, resamples, neighbours_only):
            self.ends[:, systems] = np.quantile(drawn, TAILS, axis=0)
            self._resampled_pairs(pairs, systems, self.sign * drawn, baseline, margin)
        return order, pairs

    def _own_contexts(
        self, first: Ints, second: Ints, resamples: int, baseline: int | None, margin: float
    ) -> PairTests:
        """Test each pair on the contexts that its two systems answered.

        All resamples are of the contexts of all pairs; those of them that have none of a pair's
        contexts do not count for it. Randomisation swaps each context by itself, so contexts of
        other pairs do not change it.
        """
        _, contexts, width = self._all_rows.shape
        step = max(1, min(CHUNK_BYTES // (8 * resamples), BLOCK_BYTES // (24 * contexts * width)))
        blocks = [
            self._test_block(
                first[begin : begin + step],
                second[begin : begin + step],
                resamples,
                baseline,
                margin,
            )
            for begin in range(0, len(first), step)
        ]
        columns = zip(*(vars(block).values() for block in blocks), strict=True)
        return PairTests(*(np.concatenate(column) for column in columns))

    def _test_block(
        self, i: Ints, j: Ints, resamples: int, baseline: int | None, margin: float
    ) -> PairTests:
        """Test pairs of systems i and j on their own contexts."""
        both = self._answered[i] & self._answered[j]
        rows_i, rows_j = (self._all_rows[k] * both[..., np.newaxis] for k in (i, j))
        gap: Floats = self.sign * (
            self.finish(rows_i.sum(axis=1)) - self.finish(rows_j.sum(axis=1))
        )
        ahead = np.where(gap < 0, -1, 1)
        options = {"resamples": resamples, "seed": self.seed}
        p_randomisation = swapped_pairs(rows_i, rows_j, self.finish, **options)
        drawn = ahead * self.sign * bootstrap_pairs(rows_i, rows_j, both, self.finish, **options)
        first, second = np.where(gap < 0, j, i), np.where(gap < 0, i, j)
        own = (first == baseline) | (second == baseline)
        behind = np.where(first == baseline, 1, -1) * drawn
        low, high = _quantiles(drawn)
        return PairTests(
            first,
            second,
            np.abs(gap),
            low,
            high,
            _two_sided(drawn <= 0, ~np.isnan(drawn)),
            p_randomisation,
            np.where(own, _two_sided(behind <= margin, ~np.isnan(drawn)), np.nan),
            np.count_nonzero(both, axis=1),
        )

    def _bootstrap(
        self, order: Ints, baseline: int | None, resamples: int, neighbours_only: bool
    ) -> Iterator[tuple[Ints, Floats]]:
        """Yield numbers of systems and their values [resamples, systems] on the same resamples.

        Many systems come in blocks that fit into memory, in the order of the ranking; each block
        begins with the last system of the one before and has the baseline.
        """
        if not neighbours_only:
            yield np.arange(len(order)), self._draw(np.arange(len(order)), resamples)
            return
        size = max(2, CHUNK_BYTES // (8 * resamples) // 4)
        for start in range(0, max(1, len(order) - 1), size):
            block = order[start : start + size + 1]
            if baseline is not None and baseline not in block:
                block = np.append(block, baseline)
            yield block, self._draw(block, resamples)

    def _draw(self, systems: Ints, resamples: int) -> Floats:
        table = self.table[systems]
        return paired_bootstrap(table, self.finish, resamples=resamples, seed=self.seed)

    def _resampled_pairs(
        self,
        pairs: PairTests,
        systems: Ints,
        drawn: Floats,
        baseline: int | None,
        margin: float,
    ) -> None:
        """Fill in intervals and bootstrap p-values of the pairs among these systems."""
        place = np.full(len(self.table), -1)
        place[systems] = np.arange(len(systems))
        inside = np.flatnonzero((place[pairs.first] >= 0) & (place[pairs.second] >= 0))
        step = max(1, CHUNK_BYTES // (8 * len(drawn)))
        for begin in range(0, len(inside), step):
            some = inside[begin : begin + step]
            first, second = pairs.first[some], pairs.second[some]
            gaps = drawn[:, place[first]] - drawn[:, place[second]]
            pairs.low[some], pairs.high[some] = np.quantile(gaps, TAILS, axis=0)
            pairs.p_bootstrap[some] = _two_sided(gaps <= 0)
            if baseline is not None:
                behind = np.where(first == baseline, 1, -1) * gaps <= margin
                own = (first == baseline) | (second == baseline)
                pairs.p_margin[some] = np.where(own, _two_sided(behind), np.nan)


def _two_sided(lost: NDArray[np.bool_], counted: NDArray[np.bool_] | None = None) -> Floats:
    """Return twice the share of resamples [resamples, pairs] in which the lead is lost, never 0;
    of those that are counted, if not all are."""
    total = len(lost) if counted is None else np.count_nonzero(counted, axis=0)
    share = (np.count_nonzero(lost, axis=0) + 1) / (total + 1)
    return np.asarray(np.minimum(1.0, 2 * share), np.float64)


def _quantiles(drawn: Floats) -> Floats:
    """Return the ends of the intervals [2, pairs]; NaN is left out."""
    ends = np.asarray(np.quantile(drawn, TAILS, axis=0), np.float64)
    for pair in np.flatnonzero(np.isnan(ends[0])):
        defined = drawn[~np.isnan(drawn[:, pair]), pair]
        if defined.size:
            ends[:, pair] = np.quantile(defined, TAILS)
    return ends


def _neighbours(order: Ints, baseline: int | None) -> tuple[Ints, Ints]:
    """Return the pairs of neighbours, and of the baseline with all other systems."""
    first, second = order[:-1], order[1:]
    if baseline is None:
        return first, second
    at = int(np.flatnonzero(order == baseline)[0])
    above, below = order[: max(0, at - 1)], order[at + 2 :]
    return (
        np.concatenate([first, above, np.full(len(below), baseline)]),
        np.concatenate([second, np.full(len(above), baseline), below]),
    )
