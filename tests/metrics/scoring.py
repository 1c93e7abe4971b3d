"""Scores of a few items by one metric, for tests of metrics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rejoinder.evaluator import Evaluator
from rejoinder.items import Item
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.metric import ItemMetric
from rejoinder.metrics.metric_set import MetricSpec, make_metrics
from rejoinder.metrics.summary import Estimate, Summarizer


@dataclass(frozen=True)
class Scores:
    values: np.ndarray
    unscored: dict[str, str]
    """Reasons by item id."""
    corpus: dict[str, Estimate | None]
    """Corpus values by system."""


def score(
    items: Iterable[Item], spec: MetricSpec, evaluator: Evaluator | None = None, **options: bool
) -> Scores:
    listed = list(items)
    (metric,) = make_metrics(spec, evaluator=evaluator).item_metrics
    return score_with(listed, metric, **options)


def score_with(items: list[Item], metric: ItemMetric, **options: bool) -> Scores:
    summarizer = Summarizer([metric], resamples=0)
    values: list[np.ndarray] = []
    unscored: dict[str, str] = {}
    for batch, (result,) in summarizer.watch(evaluate(items, [metric], **options)):  # type: ignore[arg-type]
        values.append(result.values)
        pairs = zip(batch, result.reasons, strict=True)
        unscored |= {item.id: str(reason) for item, reason in pairs if reason is not None}
    corpus = {summary.system: summary.corpus for summary in summarizer.summaries()}
    return Scores(np.concatenate(values), unscored, corpus)
