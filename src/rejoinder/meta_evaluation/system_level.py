"""System-level correlation: the mean score of each system against its mean rating.

There are few systems, so they are not resampled: the bootstrap resamples contexts, and with them
the means (Deutsch, Dror & Roth 2021, BOOT-INPUTS). The interval is about *these* systems and does
not generalise to others.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rejoinder.meta_evaluation.correlate import (
    STATISTICS,
    Correlations,
    Estimate,
    Integers,
    correlate,
    draw_counts,
    percentiles,
)
from rejoinder.meta_evaluation.join import Floats, Ints, Units, abbreviated

MIN_SYSTEMS = 3
MAX_CELLS = 5_000_000
"""Contexts times systems of a dense table of sums."""
MAX_PAIR_TABLE = 64
"""Systems up to which Kendall's tau is computed from a table of all pairs."""
MAX_PERMUTED = 7
"""Systems up to which p-values are exact: 7! = 5,040 permutations."""


class TooFewSystems(Exception):
    """There are too few systems for a correlation."""


def correlate_systems(
    units: Units, name: str, whole: dict[str, float] | None, resamples: int, seed: int
) -> Correlations:
    """Correlate system means; ``whole`` has the systems' values by a set metric.

    The value of a set metric can't be computed from resampled contexts, so it has no interval.
    With few systems p-values are exact: the share of all permutations of the systems in which the
    correlation is at least as strong.
    """
    codes, owner = np.unique(units.system, return_inverse=True)
    systems = [units.names[code] for code in codes]
    by_item = name in units.scores
    scores = units.scores[name] if by_item else np.zeros(len(units.human))
    with np.errstate(over="ignore"):  # a mean that overflows is not finite, hence left out
        rated = ~(np.isnan(units.human) | np.isnan(scores))
        table = _Sums(units, scores, owner, rated, len(systems))
        human, metric = _averages(table.total())
    if not by_item:
        metric = np.array([(whole or {}).get(system, np.nan) for system in systems])
    usable = np.isfinite(human) & np.isfinite(metric)
    if usable.sum() < MIN_SYSTEMS:
        raise TooFewSystems(
            f"it needs at least {MIN_SYSTEMS} systems that are rated and scored, found"
            f" {usable.sum()} ({abbreviated([systems[i] for i in np.flatnonzero(usable)])})"
        )
    plain = correlate(metric[usable], human[usable], resamples=0)
    several = by_item and table.contexts > 1
    drawn = _resampled(table, usable, resamples, seed) if several else {}
    exact = _exact_p(metric[usable], human[usable])
    estimates = {}
    for statistic in STATISTICS:
        estimate: Estimate = getattr(plain, statistic)
        low, high = None, None
        if estimate.value is not None and several:
            low, high = percentiles(drawn[statistic])
        p = estimate.p if estimate.value is None else exact.get(statistic, estimate.p)
        estimates[statistic] = Estimate(estimate.value, p, low, high)
    return Correlations(plain.n, **estimates)


def _exact_p(metric: Floats, human: Floats) -> dict[str, float]:
    """Return two-sided permutation p-values over all orders; empty if there are too many."""
    if len(metric) > MAX_PERMUTED:
        return {}
    orders = np.array(list(permutations(range(len(metric)))))
    shuffled = metric[orders]
    fixed = np.broadcast_to(human, shuffled.shape)
    p_values = {}
    for statistic, values in _statistics(fixed, shuffled).items():
        observed = abs(values[0])  # the first permutation is the identity
        p_values[statistic] = float(np.mean(np.abs(values) >= observed - 1e-12))
    return p_values


class _Sums:
    """Summed ratings, summed scores and their number by context and system.

    A dense table [contexts, systems, 3], or three sparse ones if it were too large.
    """

    def __init__(
        self,
        units: Units,
        scores: Floats,
        owner: Ints,
        rated: NDArray[np.bool_],
        systems: int,
    ) -> None:
        contexts = np.unique(units.context[rated], return_inverse=True)[1]
        self.contexts, self.systems = int(contexts.max(initial=-1)) + 1, systems
        columns = np.column_stack([units.human, scores, np.ones(len(scores))])[rated]
        self.dense: Floats | None = None
        self.sparse: list[csr_array] = []
        if self.contexts * systems <= MAX_CELLS:
            self.dense = np.zeros((self.contexts, systems, 3))
            np.add.at(self.dense, (contexts, owner[rated]), columns)
        else:
            shape = self.contexts, systems
            self.sparse = [
                csr_array((column, (contexts, owner[rated])), shape=shape) for column in columns.T
            ]

    def total(self) -> Floats:
        """Return the sums over all contexts [systems, 3]."""
        if self.dense is not None:
            return np.asarray(self.dense.sum(axis=0))
        return np.column_stack([table.sum(axis=0) for table in self.sparse])

    def resampled(self, counts: Integers, systems: NDArray[np.bool_]) -> Floats:
        """Return the sums over resampled contexts [resamples, systems, 3]."""
        weights = counts.astype(np.float64)
        if self.dense is not None:
            return np.tensordot(weights, self.dense[:, systems], axes=1)
        return np.stack([(table.T @ weights.T).T[:, systems] for table in self.sparse], axis=-1)


def _averages(sums: Floats) -> tuple[Floats, Floats]:
    """Return mean ratings and mean scores of each system; NaN for a system without any."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return sums[..., 0] / sums[..., 2], sums[..., 1] / sums[..., 2]


def _resampled(
    table: _Sums, systems: NDArray[np.bool_], resamples: int, seed: int
) -> dict[str, Floats]:
    """Return the correlations of resampled means; NaN if a system was not drawn at all."""
    rng = np.random.default_rng(seed)
    row_bytes = 8 * (table.contexts + 3 * int(systems.sum()))
    chunks = draw_counts(rng, table.contexts, resamples, row_bytes=row_bytes)
    parts = [_statistics(*_averages(table.resampled(counts, systems))) for counts in chunks]
    return {name: np.concatenate([part[name] for part in parts]) for name in STATISTICS}


def _statistics(human: Floats, metric: Floats) -> dict[str, Floats]:
    """Return the three correlations of each row with the same row of the other table."""
    return {
        "pearson": _rowwise(human, metric),
        "spearman": _rowwise(_ranks(human), _ranks(metric)),
        "kendall": _kendall(human, metric),
    }


def _kendall(human: Floats, metric: Floats) -> Floats:
    """Return Kendall's tau-b of each row: from the signs of all pairs, or for many systems, whose
    pairs would fill the memory, by scipy row by row."""
    if human.shape[1] > MAX_PAIR_TABLE:
        from scipy.stats import kendalltau

        defined = np.isfinite(human).all(axis=1) & np.isfinite(metric).all(axis=1)
        values = np.full(len(human), np.nan)
        for row in np.flatnonzero(defined).tolist():
            values[row] = kendalltau(human[row], metric[row]).statistic
        return values
    upper = np.triu_indices(human.shape[1], k=1)
    signs = [np.sign(x[:, :, None] - x[:, None, :])[:, upper[0], upper[1]] for x in (human, metric)]
    return _uncentred(*signs)


def _ranks(values: Floats) -> Floats:
    from scipy.stats import rankdata

    return np.asarray(rankdata(values, axis=1, nan_policy="propagate"))


def _rowwise(a: Floats, b: Floats) -> Floats:
    """Return Pearson's correlation of each row of a with the same row of b."""
    return _uncentred(a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True))


def _uncentred(a: Floats, b: Floats) -> Floats:
    """Σab / sqrt(Σa² Σb²): of centred values Pearson's r, of pair signs Kendall's tau-b."""
    scale = np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    undefined = np.full(len(a), np.nan)
    ratio: Floats = np.divide((a * b).sum(axis=1), scale, out=undefined, where=scale > 0)
    return ratio
