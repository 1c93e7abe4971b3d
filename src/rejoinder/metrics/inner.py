"""Metrics inside metrics: how they are made, and how they stand in a signature."""

from __future__ import annotations

from rejoinder.metrics.base import ItemMetric, Metric, make_metric
from rejoinder.spec import Spec


def inner_metric(key: str, spec: Spec) -> ItemMetric:
    """The metric that a parameter names; ValueError unless it scores single replies."""
    metric = make_metric(spec)
    if not isinstance(metric, ItemMetric):
        raise ValueError(f"{key}={spec} judges sets of replies, not single ones")
    return metric


def signed_inner(metric: Metric) -> str:
    """All that decides the numbers of an inner metric, but the version, which the outer one has."""
    return "(" + metric.signature().rpartition("|version:")[0] + ")"
