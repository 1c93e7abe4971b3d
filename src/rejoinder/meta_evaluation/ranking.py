"""Which system is better: ranks with intervals, tests, and groups that can't be told apart.

Systems are compared on the contexts that all of them answered, context by context, so that
an easy context is easy for everybody. Everything works on the metric's additive statistics.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.items import Item
from rejoinder.meta_evaluation.join import listed
from rejoinder.meta_evaluation.significance import (
    Finish,
    holm,
    letters,
    paired_bootstrap,
    randomisation_table,
)
from rejoinder.metrics.base import Metric
from rejoinder.metrics.evaluate import Judged, Scored, judge_sets
from rejoinder.metrics.pooling import averaged
from rejoinder.metrics.request import Requests

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
class Order:
    """Systems from best to worst, over the contexts that all of them answered."""

    contexts: int
    left_out: int
    """Contexts that not every system answered, or that could not be scored for one of them."""
    systems: list[Ranked]
    pairs: list[Pair]


@dataclass(frozen=True)
class Ranking(Order):
    """An order, and the metric that says so."""

    metric: Metric


class NotComparable(Exception):
    """Why systems can't be compared by a metric."""


@dataclass
class Rows:
    """One metric's additive statistics by system and context, and what it could not score."""

    finish: Finish
    higher_is_better: bool = True
    found: dict[tuple[str, str], Floats] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    """Contexts in which a reply could not be scored."""
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, system: str, context: str, row: Floats | None, reason: str | None) -> None:
        if row is None or reason is not None:
            self.missing.add(context)
            self.reasons[str(reason)] += 1
        else:
            key = system, context
            self.found[key] = self.found[key] + row if key in self.found else row


def compare_systems(
    asked: Requests,
    batches: Iterable[tuple[list[Item], list[Scored]]],
    *,
    resamples: int,
    seed: int,
) -> tuple[list[Ranking], dict[Metric, str]]:
    """Rank systems by each metric; those by which they can't be compared, with the reason.

    ``batches`` are those of :func:`rejoinder.metrics.evaluate.evaluate`.
    """
    columns: dict[Metric, Rows] = {
        metric: Rows(metric.values, metric.higher_is_better) for metric in asked.item_metrics
    }
    systems: dict[str, None] = {}
    kept: list[Item] = []
    for items, results in batches:
        systems.update(dict.fromkeys(item.system for item in items))
        kept.extend(items if asked.sets else ())
        for column, result in zip(columns.values(), results, strict=True):
            for item, row, reason in zip(items, result.rows, result.reasons, strict=True):
                column.add(item.system, item.group, row, reason)
    if len(systems) < 2:
        raise DataError(
            f"found one system only ({', '.join(systems)}); expected replies of two or more,"
            " told apart by the field 'system'"
        )
    by_sets, refused = _set_rows(judge_sets(kept, asked.set_metrics))
    rankings = []
    for metric, column in (columns | by_sets).items():
        try:
            order = rank(column, list(systems), resamples, seed)
            rankings.append(Ranking(**vars(order), metric=metric))
        except NotComparable as error:
            refused[metric] = str(error)
    if not rankings:
        labels = asked.labels
        raise DataError("; ".join(f"{labels[each]}: {why}" for each, why in refused.items()))
    return rankings, refused


def rank_values(
    items: Sequence[Item],
    values: Floats,
    *,
    higher_is_better: bool = True,
    reasons: Mapping[str, str] | None = None,
    resamples: int,
    seed: int,
) -> Order:
    """Rank systems by the average of what their replies got, such as scores out of a file; NaN is
    unscored, for which ``reasons`` has the reason by item."""
    column = Rows(averaged, higher_is_better)
    for item, value in zip(items, values.tolist(), strict=True):
        if math.isnan(value):
            column.add(item.system, item.group, None, (reasons or {}).get(item.id, "no value"))
        else:
            column.add(item.system, item.group, np.array([value, 1.0]), None)
    return rank(column, list(dict.fromkeys(item.system for item in items)), resamples, seed)


def _set_rows(judged: Iterable[Judged]) -> tuple[dict[Metric, Rows], dict[Metric, str]]:
    """Set metrics that average over contexts; the others are refused with the reason."""
    rows: dict[Metric, Rows] = {}
    refused: dict[Metric, str] = {}
    for row in judged:
        if row.metric.pooled:
            refused[row.metric] = "it does not add up over contexts, so they can't be resampled"
            continue
        column = rows.setdefault(row.metric, Rows(averaged, row.metric.higher_is_better))
        for context, value in row.contexts.items():
            if isinstance(value, str):
                column.add(row.system, context, None, value)
            else:
                column.add(row.system, context, np.array([value, 1.0]), None)
    return rows, refused


def rank(column: Rows, systems: Sequence[str], resamples: int, seed: int) -> Order:
    """Order systems by the value of their summed rows over the contexts that all share."""
    rows, finish = column.found, column.finish
    everywhere = dict.fromkeys(context for _, context in rows) | dict.fromkeys(column.missing)
    shared = [
        context
        for context in everywhere
        if context not in column.missing and all((system, context) in rows for system in systems)
    ]
    if len(shared) < 2:
        raise NotComparable(_why_not(column, systems, len(shared)))
    table = np.array([[rows[system, context] for context in shared] for system in systems])
    values = finish(table.sum(axis=1))
    drawn = paired_bootstrap(table, finish, resamples=resamples, seed=seed)
    sign = 1 if column.higher_is_better else -1
    order = np.argsort(-sign * values, kind="stable")
    below = np.argsort(order)[:, None] < np.argsort(order)  # each pair once, the better one first
    tested = randomisation_table(table, finish, resamples=resamples, seed=seed)
    p_values = np.where(below, tested, np.nan)
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
    return Order(len(shared), len(everywhere) - len(shared), ranked, pairs)


def _why_not(column: Rows, systems: Sequence[str], shared: int) -> str:
    commonest = column.reasons.most_common(1)
    if not column.found and commonest:
        return f"no item could be scored: {commonest[0][0]}"
    hint = "is 'context_id' the same for all?"
    if commonest:
        hint = f"{commonest[0][1]:,} unscored: {commonest[0][0]}"
    return (
        f"{shared} contexts were answered by all of {listed(systems)} and could be scored;"
        f" comparing needs at least 2 ({hint})"
    )


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
