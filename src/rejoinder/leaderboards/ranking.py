"""Ranks of metrics by their correlation with people, with what chance alone can explain.

Metrics are scored on the same replies, so their correlations vary together: all are computed on the
same bootstrap resamples of contexts.  For two metrics z is the difference of their correlations,
divided by its standard deviation over the resamples; its p-value is that of a normal distribution.
The bootstrap's own p-value can't be below 1 / resamples, which adjusted for the pairs of twenty
metrics is never significant.  P-values are adjusted for all pairs (Holm 1979).

A metric that k others are significantly better than, and that is significantly better than l of m
metrics, has the ranks k + 1 to m - l: an interval for its rank (Al Mohamad, Goeman & van Zwet 2022,
"Simultaneous confidence intervals for ranks with application to ranking institutions", Biometrics).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rejoinder.meta_evaluation.correlate import (
    Correlations,
    Floats,
    bootstrap,
    correlate_many,
    percentiles,
)
from rejoinder.meta_evaluation.join import Ints
from rejoinder.meta_evaluation.significance import holm

ALPHA = 0.05
TOLERANCE = 1e-12
"""Smaller standard deviations of a difference are rounding: the two rank the replies equally."""


@dataclass(frozen=True)
class SetColumns:
    """Rated replies of a set, and the scores of metrics on all of them, higher is better."""

    human: Floats
    contexts: Ints
    scores: dict[str, Floats]


@dataclass(frozen=True)
class Place:
    """The place of a metric among others."""

    metric: str
    value: float
    ci: tuple[float, float] | None
    ranks: tuple[int, int]
    """Its first and last possible rank."""


@dataclass(frozen=True)
class SetRanking:
    """The places on one set, and the resampled correlations by metric."""

    places: list[Place]
    resampled: dict[str, Floats]


def correlations_of(columns: SetColumns, resamples: int, seed: int) -> dict[str, Correlations]:
    """Return the correlations of metrics with people; each may lack scores of other replies."""
    by_name = {}
    for name, values in columns.scores.items():
        scored = ~np.isnan(values)
        by_name[name] = correlate_many(
            values[scored][np.newaxis],
            columns.human[scored],
            clusters=columns.contexts[scored],
            resamples=resamples,
            seed=seed,
        )[0]
    return by_name


def rank_on_set(
    columns: SetColumns, metrics: Sequence[str], resamples: int, seed: int
) -> SetRanking:
    """Rank metrics that scored every reply of a set; those without a correlation are left out."""
    if not metrics:
        return SetRanking([], {})
    table = np.array([columns.scores[name] for name in metrics])
    known = correlate_many(table, columns.human, resamples=0)
    defined = [n for n, each in enumerate(known) if each.spearman.value is not None]
    names = [metrics[n] for n in defined]
    values = np.array([known[n].spearman.value for n in defined], np.float64)
    if not names or np.unique(columns.contexts).size < 2:
        drawn = np.full((len(names), resamples), np.nan)
    else:
        drawn = bootstrap(
            table[defined],
            columns.human,
            clusters=columns.contexts,
            resamples=resamples,
            seed=seed,
            statistics=["spearman"],
        )["spearman"]
    return SetRanking(_places(names, values, drawn), dict(zip(names, drawn, strict=True)))


def rank_over_sets(rankings: Sequence[SetRanking]) -> list[Place]:
    """Rank the metrics that have a place on every set by their mean correlation.

    Sets are independent of each other, so resample i of the mean is the mean of the sets' resamples
    i.
    """
    if not rankings:
        return []
    known = [{place.metric: place.value for place in each.places} for each in rankings]
    names = [name for name in known[0] if all(name in each for each in known)]
    values = np.array([np.mean([each[name] for each in known]) for name in names])
    drawn = np.array(
        [np.mean([each.resampled[name] for each in rankings], axis=0) for name in names]
    )
    return _places(names, values, drawn)


def _places(names: Sequence[str], values: Floats, drawn: Floats) -> list[Place]:
    """Return the places of metrics, the best one first."""
    if not names:
        return []
    better = significantly_better(values, drawn)
    beaten_by, beats = better.sum(axis=0), better.sum(axis=1)
    places = []
    for number, name in enumerate(names):
        low, high = percentiles(drawn[number])
        ci = None if low is None or high is None else (low, high)
        ranks = int(beaten_by[number]) + 1, len(names) - int(beats[number])
        places.append(Place(name, float(values[number]), ci, ranks))
    return sorted(places, key=lambda place: (-place.value, place.metric))


def significantly_better(values: Floats, drawn: Floats) -> np.ndarray:
    """Return whether metric i is significantly better than metric j, [metrics, metrics].

    ``drawn`` [metrics, resamples] are their correlations on the same resamples.
    """
    from scipy.special import ndtr

    count = len(values)
    if drawn.shape[1] < 2:  # no resamples, no tests
        return np.zeros((count, count), bool)
    first, second = np.triu_indices(count, k=1)
    gaps = drawn[first] - drawn[second]
    # at least half of the resamples must have a correlation, as for intervals
    enough = 2 * np.isfinite(gaps).sum(axis=1) >= gaps.shape[1]
    p_values = np.full(len(first), np.nan)
    differences = values[first] - values[second]
    for pair in np.flatnonzero(enough):
        deviation = float(np.nanstd(gaps[pair], ddof=1))
        if deviation > TOLERANCE:
            p_values[pair] = 2 * ndtr(-abs(differences[pair]) / deviation)
        else:
            p_values[pair] = 1.0
    significant = holm(p_values) <= ALPHA
    table = np.zeros((count, count), bool)
    table[first, second] = significant & (differences > 0)
    table[second, first] = significant & (differences < 0)
    return table
