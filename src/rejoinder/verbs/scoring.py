"""From items to results: one pass, all metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from rejoinder.evaluator.seen import EvaluatedSet
from rejoinder.items import Item
from rejoinder.metrics.base import ItemMetric
from rejoinder.metrics.batch import Floats
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.summary import Summarizer
from rejoinder.verbs.results import Results, Scores


def scored(
    items: Iterable[Item],
    specs: Sequence[str],
    metrics: Sequence[ItemMetric],
    *,
    resamples: int,
    seed: int,
    kind: str | None = None,
    examined: EvaluatedSet | None = None,
) -> Results:
    """Every metric's scores, with their summary."""
    summarizer = Summarizer(metrics, resamples=resamples, seed=seed)
    values: list[list[Floats]] = [[] for _ in metrics]
    unscored: list[dict[str, str]] = [{} for _ in metrics]
    ids: list[str] = []
    systems: list[str] = []
    for batch, results in summarizer.watch(evaluate(items, metrics, examined=examined)):
        ids += [item.id for item in batch]
        systems += [item.system for item in batch]
        for which, result in enumerate(results):
            values[which].append(result.values)
            for item, reason in zip(batch, result.reasons, strict=True):
                if reason is not None:
                    unscored[which][item.id] = reason
    rows = summarizer.summaries()
    found = {
        spec: Scores(
            metric,
            np.concatenate(values[which]) if values[which] else np.zeros(0),
            unscored[which],
            {row.system: row.corpus for row in rows if row.metric == metric},
            {row.system: row.mean for row in rows if row.metric == metric},
        )
        for which, (spec, metric) in enumerate(zip(specs, metrics, strict=True))
    }
    return Results(found, ids, systems, kind)
