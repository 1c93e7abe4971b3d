"""What scores cost: requests, tokens and seconds, for each point of agreement with people.

Judges say in each line of a scores file what their answers cost when they were asked for, also if
they are from the cache now. What other metrics took is in the file of ``score --costs``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoinder.metrics.costs import MetricCost

Floats = NDArray[np.float64]

POINT = 0.01
"""A point of agreement: Spearman's correlation times 100."""
REPLIES = 1000
"""Replies that costs are told for."""


@dataclass(frozen=True)
class Cost:
    """What 1,000 replies cost, and each point of agreement that they buy."""

    requests: float
    tokens: float
    seconds: float
    requests_per_point: float | None
    """None where the metric does not agree with people."""
    tokens_per_point: float | None
    seconds_per_point: float | None


def cost_of(total: MetricCost, spearman: float | None) -> Cost:
    """Return the cost of 1,000 replies, and of each point of agreement."""
    each = [
        REPLIES * value / total.replies for value in (total.requests, total.tokens, total.seconds)
    ]
    points = None if spearman is None or spearman <= 0 else spearman / POINT
    return Cost(*each, *(None if points is None else value / points for value in each))


def judged_cost(judging: Mapping[str, Floats]) -> MetricCost | None:
    """Return what a judge's answers cost, as its scores say; None if they do not."""
    if "requests" not in judging:
        return None
    asked = ~np.isnan(judging["requests"])
    if not asked.any():
        return None
    sums = {
        kind: float(np.nansum(judging.get(kind, np.zeros(1))))
        for kind in ("requests", "tokens", "seconds")
    }
    return MetricCost(
        int(asked.sum()), sums["seconds"], round(sums["requests"]), round(sums["tokens"])
    )
