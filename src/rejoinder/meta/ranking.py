"""Which system is better: ranks with intervals, tests, and groups that can't be told apart.

Systems are compared on the contexts that all of them answered, context by context, so that
an easy context is easy for everybody. Everything works on the metric's additive statistics.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.items import Item
from rejoinder.meta.significance import (
    Finish,
    approximate_randomisation,
    holm,
    letters,
    paired_bootstrap,
)
from rejoinder.metrics.base import ItemMetric, Metric, SetMetric
from rejoinder.metrics.evaluate import Judged, Scored

Floats = NDArray[np.float64]
ALPHA = 0.05
TAILS = [0.025, 0.975]


@dataclass(frozen=True)
class Ranked:
    """One system's place by one metric."""

    system: str
    value: float
    low: float
    high: float
    group: str
    """Letters: systems that share one can't be told apart at the 5 % level."""


@dataclass(frozen=True)
class Pair:
    """Two systems: how much better the first is (also where lower is better), and how sure."""

    better: str
    worse: str
    difference: float
    low: float
    high: float
    p_bootstrap: float
    p_randomisation: float | None
    p_adjusted: float | None
    """Approximate randomisation, adjusted for all pairs of this metric (Holm)."""


@dataclass(frozen=True)
class Ranking:
    metric: Metric
    contexts: int
    left_out: int
    """Contexts that not every system answered, or that could not be scored for one of them."""
    systems: list[Ranked]
    pairs: list[Pair]


class Statistics:
    """Collects, as batches stream by, each item metric's rows by system and context."""

    def __init__(self, metrics: Sequence[ItemMetric]) -> None:
        self.metrics = metrics
        self._rows: list[dict[tuple[str, str], Floats]] = [{} for _ in metrics]
        self._missing: list[set[str]] = [set() for _ in metrics]
        self.systems: dict[str, None] = {}

    def add(self, items: Sequence[Item], results: Sequence[Scored]) -> None:
        self.systems.update(dict.fromkeys(item.system for item in items))
        for rows, missing, result in zip(self._rows, self._missing, results, strict=True):
            for item, row, reason in zip(items, result.rows, result.reasons, strict=True):
                if reason is not None:
                    missing.add(item.group)
                    continue
                key = item.system, item.group
                rows[key] = rows[key] + row if key in rows else row

    def rankings(self, *, resamples: int, seed: int) -> list[Ranking]:
        return [
            rank(metric, list(self.systems), rows, missing, metric.values, resamples, seed)
            for metric, rows, missing in zip(self.metrics, self._rows, self._missing, strict=True)
        ]


def rank_sets(
    judged: Iterable[Judged], systems: Sequence[str], *, resamples: int, seed: int
) -> tuple[list[Ranking], dict[Metric, str]]:
    """Rank by set metrics that average over contexts; the others are refused with the reason."""
    rows: dict[SetMetric, dict[tuple[str, str], Floats]] = {}
    missing: dict[SetMetric, set[str]] = {}
    refused: dict[Metric, str] = {}
    for row in judged:
        if row.metric.pooled:
            refused[row.metric] = "it does not add up over contexts, so they can't be resampled"
            continue
        mine, without = rows.setdefault(row.metric, {}), missing.setdefault(row.metric, set())
        for context, value in row.contexts.items():
            if isinstance(value, str):
                without.add(context)
            else:
                mine[row.system, context] = np.array([value, 1.0])
    found = [
        rank(metric, systems, mine, missing[metric], _average, resamples, seed)
        for metric, mine in rows.items()
    ]
    return found, refused


def _average(rows: Floats) -> Floats:
    return np.asarray(rows[..., 0] / rows[..., 1])


def rank(
    metric: Metric,
    systems: Sequence[str],
    rows: dict[tuple[str, str], Floats],
    missing: set[str],
    finish: Finish,
    resamples: int,
    seed: int,
) -> Ranking:
    """Order systems by the value of their summed rows over the contexts that all share."""
    if len(systems) < 2:
        raise DataError(
            f"found one system only ({', '.join(systems)}); expected replies of two or more,"
            " told apart by the field 'system'"
        )
    everywhere = dict.fromkeys(context for _, context in rows) | dict.fromkeys(missing)
    shared = [
        context
        for context in everywhere
        if context not in missing and all((system, context) in rows for system in systems)
    ]
    if len(shared) < 2:
        raise DataError(
            f"{metric}: {len(shared)} contexts were answered by all of {', '.join(systems)} and"
            " could be scored; comparing needs at least 2 (is 'context_id' the same for all?)"
        )
    table = np.array([[rows[system, context] for context in shared] for system in systems])
    values = finish(table.sum(axis=1))
    drawn = paired_bootstrap(table, finish, resamples=resamples, seed=seed)
    sign = 1 if metric.higher_is_better else -1
    order = np.argsort(-sign * values, kind="stable")
    p_values = np.full((len(systems), len(systems)), np.nan)
    for position, i in enumerate(order):
        for j in order[position + 1 :]:
            p = approximate_randomisation(
                table[i], table[j], finish, resamples=resamples, seed=seed
            )
            p_values[i, j] = np.nan if p is None else p
    adjusted = holm(p_values)
    marks = letters(order.tolist(), adjusted, ALPHA)
    low, high = np.quantile(drawn, TAILS, axis=0)
    ranked = [
        Ranked(systems[i], float(values[i]), float(low[i]), float(high[i]), mark)
        for i, mark in zip(order, marks, strict=True)
    ]
    pairs = [
        _pair(systems, sign * values, sign * drawn, p_values, adjusted, int(i), int(j))
        for position, i in enumerate(order)
        for j in order[position + 1 :]
    ]
    return Ranking(metric, len(shared), len(everywhere) - len(shared), ranked, pairs)


def _pair(
    systems: Sequence[str],
    values: Floats,
    drawn: Floats,
    p_values: Floats,
    adjusted: Floats,
    i: int,
    j: int,
) -> Pair:
    gaps = drawn[:, i] - drawn[:, j]
    low, high = np.quantile(gaps, TAILS)
    # two-sided: twice the share of resamples in which the lead is gone, never 0
    lost = (np.count_nonzero(gaps <= 0) + 1) / (len(gaps) + 1)
    return Pair(
        systems[i],
        systems[j],
        float(values[i] - values[j]),
        float(low),
        float(high),
        float(min(1.0, 2 * lost)),
        None if np.isnan(p_values[i, j]) else float(p_values[i, j]),
        None if np.isnan(adjusted[i, j]) else float(adjusted[i, j]),
    )
