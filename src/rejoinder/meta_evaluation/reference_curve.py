"""Correlation with people as a function of the number of references (Gupta et al. 2019, Fig. 2).

References are drawn at random without replacement, the same ones for all replies to a context,
several times: the curve is the mean over the draws, the band their 2.5 % to 97.5 % quantiles. An
item with fewer references uses all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from rejoinder.errors import DataError
from rejoinder.items import Item
from rejoinder.meta_evaluation.correlate import STATISTICS, correlate_many
from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.language_check import LanguageCheck
from rejoinder.metrics.metric import ItemMetric
from rejoinder.metrics.scoring_context import ScoringContext

if TYPE_CHECKING:
    from rejoinder.evaluator.contamination import TestSet


@dataclass(frozen=True)
class CurvePoint:
    """Correlation with a number of references: mean and band over draws."""

    references: int
    draws: int
    n: int
    """Smallest number of scored items over the draws."""
    mean: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]


def reference_curve(
    items: Sequence[Item],
    metrics: Sequence[ItemMetric],
    *,
    draws: int = 20,
    seed: int = 12345,
    any_language: bool = False,
    on_note: Callable[[str], None] | None = None,
) -> list[list[CurvePoint]]:
    """Return for each metric a point for each number of references, from 1 to the maximum.

    ``any_language`` and ``on_note`` are those of :func:`rejoinder.metrics.evaluate.evaluate`.
    """
    rated = [item for item in items if item.rating() is not None and item.references]
    if not rated:
        raise DataError("no item has both ratings and references; the curve needs both")
    LanguageCheck(metrics, any_language, on_note).check(rated)
    human = np.array([item.rating() for item in rated], dtype=float)
    max_references = max(len(item.references) for item in rated)
    test_set = _test_set(rated) if any(metric.evaluators() for metric in metrics) else None
    curves: list[list[CurvePoint]] = [[] for _ in metrics]
    for size in range(1, max_references + 1):
        # all references can be drawn in one way only
        times = draws if size < max_references else 1
        correlations: list[list[dict[str, float]]] = [[] for _ in metrics]
        for draw in range(times):
            rng = np.random.default_rng([seed, size, draw])
            drawn = scored_draw(draw_references(rated, size, rng), metrics, test_set)
            for which, values in enumerate(drawn):
                correlations[which].append(_correlate(values, human))
        for which, rows in enumerate(correlations):
            curves[which].append(_point(size, rows))
    return curves


def _test_set(items: Sequence[Item]) -> TestSet:
    """Return the contexts, which are the same for all draws."""
    from rejoinder.evaluator.contamination import TestSet

    return TestSet.of(items)


def scored_draw(
    items: Sequence[Item], metrics: Sequence[ItemMetric], test_set: TestSet | None = None
) -> list[Floats]:
    """Return the values of items by each metric."""
    context = ScoringContext(Batch.of(items), test_set)
    return [context.score(metric).values for metric in metrics]


def draw_references(
    items: Sequence[Item], size: int, rng: np.random.Generator, *, keep_first: bool = False
) -> list[Item]:
    """Return the items with ``size`` of their references, the same for all items of a context; with
    ``keep_first``, the first one is always among them."""
    chosen: dict[tuple[str, int], list[int]] = {}
    drawn = []
    for item in items:
        key = item.group, len(item.references)
        if key not in chosen:
            order = rng.permutation(len(item.references))
            if keep_first:
                order = np.concatenate([[0], order[order > 0]])
            chosen[key] = sorted(order[:size].tolist())
        references = [item.references[number] for number in chosen[key]]
        drawn.append(msgspec.structs.replace(item, references=references))
    return drawn


def _correlate(values: Floats, human: Floats) -> dict[str, float]:
    """Return the three correlations and the number of items."""
    scored = ~np.isnan(values)
    (correlations,) = correlate_many(values[scored][np.newaxis], human[scored], resamples=0)
    estimates = {statistic: getattr(correlations, statistic).value for statistic in STATISTICS}
    return {"n": correlations.n} | {s: np.nan if v is None else v for s, v in estimates.items()}


def _point(size: int, rows: Sequence[dict[str, float]]) -> CurvePoint:
    columns = {s: np.array([row[s] for row in rows]) for s in STATISTICS}
    defined = {s: values[~np.isnan(values)] for s, values in columns.items()}
    defined = {s: values for s, values in defined.items() if values.size}
    return CurvePoint(
        size,
        len(rows),
        int(min(row["n"] for row in rows)),
        {s: float(values.mean()) for s, values in defined.items()},
        {s: float(np.quantile(values, 0.025)) for s, values in defined.items()},
        {s: float(np.quantile(values, 0.975)) for s, values in defined.items()},
    )
