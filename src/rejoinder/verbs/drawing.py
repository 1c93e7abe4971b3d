"""Metrics that are computed again for many random draws of references."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rejoinder.metrics.metric import ItemMetric
    from rejoinder.metrics.metric_set import MetricSet
    from rejoinder.verbs.monitor import Monitor


def drawable(metric_set: MetricSet, monitor: Monitor) -> list[ItemMetric]:
    """Return the metrics that can be drawn as a curve, and say which can't: thousands of draws
    would be thousands of requests to a language model."""
    metrics = [metric for metric in metric_set.item_metrics if not metric.asking()]
    for metric in metric_set.item_metrics:
        if metric not in metrics:
            monitor.note(f"{metric_set.labels[metric]}: no curve, because it asks a language model")
    return metrics
