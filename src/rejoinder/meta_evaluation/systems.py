"""System level: the average score of each system against its average rating.

There are few systems, so the interval does not resample them: it resamples contexts, and
with them the averages (Deutsch, Dror & Roth 2021, BOOT-INPUTS). It tells how sure the
correlation of *these* systems is, not how other systems would fare.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from rejoinder.meta_evaluation.correlate import (
    STATISTICS,
    Correlations,
    Estimate,
    correlate,
    draw_counts,
    percentiles,
)
from rejoinder.meta_evaluation.join import Floats, Ints, Units, listed

FEWEST_SYSTEMS = 3
MOST_PERMUTED = 7


class TooFewSystems(Exception):
    """Fewer systems than a correlation can be taken of."""


def correlate_systems(
    units: Units, name: str, whole: dict[str, float] | None, resamples: int, seed: int
) -> Correlations:
    """Correlate system averages; a set metric brings its systems' values as ``whole``.

    The value of a set metric cannot be averaged from resampled contexts: it has no interval.
    With few systems p-values are exact: the share of all orders of the systems in which the
    correlation is at least as strong.
    """
    codes, owner = np.unique(units.system, return_inverse=True)
    systems = [units.names[code] for code in codes]
    by_item = name in units.scores
    scores = units.scores[name] if by_item else np.zeros(len(units.human))
    table = _sums(units, scores, owner, ~(np.isnan(units.human) | np.isnan(scores)), len(systems))
    human, metric = _averages(table.sum(axis=0))
    if not by_item:
        metric = np.array([(whole or {}).get(system, np.nan) for system in systems])
    known = np.isfinite(human) & np.isfinite(metric)
    if known.sum() < FEWEST_SYSTEMS:
        raise TooFewSystems(
            f"it needs at least {FEWEST_SYSTEMS} systems that are rated and scored, found"
            f" {known.sum()} ({listed([systems[i] for i in np.flatnonzero(known)])})"
        )
    plain = correlate(metric[known], human[known], resamples=0)
    several = by_item and len(table) > 1
    drawn = _resampled(table[:, known], resamples, seed) if several else {}
    exact = _exact_p(metric[known], human[known])
    estimates = {}
    for statistic in STATISTICS:
        found: Estimate = getattr(plain, statistic)
        low, high = None, None
        if found.value is not None and several:
            low, high = percentiles(drawn[statistic])
        p = found.p if found.value is None else exact.get(statistic, found.p)
        estimates[statistic] = Estimate(found.value, p, low, high)
    return Correlations(plain.n, **estimates)


def _exact_p(metric: Floats, human: Floats) -> dict[str, float]:
    """Two-sided permutation p-values over all orders; nothing where those are too many."""
    if len(metric) > MOST_PERMUTED:
        return {}
    orders = np.array(list(permutations(range(len(metric)))))
    shuffled = metric[orders]
    fixed = np.broadcast_to(human, shuffled.shape)
    found = {}
    for statistic, values in _statistics(fixed, shuffled).items():
        observed = abs(values[0])  # the first order is the given one
        found[statistic] = float(np.mean(np.abs(values) >= observed - 1e-12))
    return found


def _sums(
    units: Units, scores: Floats, owner: Ints, known: NDArray[np.bool_], systems: int
) -> Floats:
    """[contexts, systems, 3]: summed ratings, summed scores, and how many there are."""
    contexts = np.unique(units.context[known], return_inverse=True)[1]
    table = np.zeros((int(contexts.max(initial=-1)) + 1, systems, 3))
    columns = np.column_stack([units.human, scores, np.ones(len(scores))])[known]
    np.add.at(table, (contexts, owner[known]), columns)
    return table


def _averages(sums: Floats) -> tuple[Floats, Floats]:
    """Average ratings and average scores of each system; NaN for a system without any."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return sums[..., 0] / sums[..., 2], sums[..., 1] / sums[..., 2]


def _resampled(table: Floats, resamples: int, seed: int) -> dict[str, Floats]:
    """Correlations of resampled averages; NaN where a system was not drawn at all."""
    rng = np.random.default_rng(seed)
    chunks = draw_counts(rng, len(table), resamples, row_bytes=8 * (len(table) + table[0].size))
    sums = np.concatenate([np.tensordot(c.astype(np.float64), table, axes=1) for c in chunks])
    return _statistics(*_averages(sums))


def _statistics(human: Floats, metric: Floats) -> dict[str, Floats]:
    """The three correlations of each row of one with the same row of the other."""
    upper = np.triu_indices(human.shape[1], k=1)
    signs = [np.sign(x[:, :, None] - x[:, None, :])[:, upper[0], upper[1]] for x in (human, metric)]
    return {
        "pearson": _rowwise(human, metric),
        "spearman": _rowwise(_ranks(human), _ranks(metric)),
        "kendall": _uncentred(*signs),
    }


def _ranks(values: Floats) -> Floats:
    from scipy.stats import rankdata

    return np.asarray(rankdata(values, axis=1, nan_policy="propagate"))


def _rowwise(a: Floats, b: Floats) -> Floats:
    """Pearson's correlation of each row of a with the same row of b."""
    return _uncentred(a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True))


def _uncentred(a: Floats, b: Floats) -> Floats:
    """Σab / sqrt(Σa² Σb²): of centred values Pearson's r, of pair signs Kendall's tau-b."""
    scale = np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    undefined = np.full(len(a), np.nan)
    ratio: Floats = np.divide((a * b).sum(axis=1), scale, out=undefined, where=scale > 0)
    return ratio
