"""What tests of single metrics share: a spec and pairs of (reply, reference) → numbers."""

from __future__ import annotations

import numpy as np

from rejoinder.items import Item, Reference
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.metric import ItemMetric, make_metric


def rows(spec: str, *pairs: tuple[str, str]) -> tuple[ItemMetric, np.ndarray]:
    """The metric, and a row of statistics for each (reply, reference)."""
    items = [
        Item(id=str(i), response=reply, references=[Reference(text=reference)])
        for i, (reply, reference) in enumerate(pairs)
    ]
    [(_, [scored])] = evaluate(items, [make_metric(spec)])
    return scored.metric, scored.rows


def value(spec: str, reply: str, reference: str) -> float:
    metric, statistics = rows(spec, (reply, reference))
    return float(metric.values(statistics)[0])


def corpus(spec: str, *pairs: tuple[str, str]) -> float:
    metric, statistics = rows(spec, *pairs)
    return float(metric.values(statistics.sum(axis=0)))
