"""Means with their intervals as drawings on a common axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 240.0
MARGIN = 6.0


@dataclass(frozen=True)
class Strip:
    """Places of a mean and of its interval on the axis, in units of the drawing."""

    low: float
    mean: float
    high: float


def strips(values: Sequence[tuple[float, tuple[float, float]]]) -> list[Strip]:
    """Return the places of means with their intervals; the axis covers all intervals.

    >>> strips([(2.0, (1.0, 3.0))])
    [Strip(low=6.0, mean=120.0, high=234.0)]
    """
    if not values:
        return []
    least = min(low for _, (low, _) in values)
    most = max(high for _, (_, high) in values)
    span = (most - least) or 1.0

    def place(value: float) -> float:
        return round(MARGIN + (WIDTH - 2 * MARGIN) * (value - least) / span, 2)

    return [Strip(place(low), place(mean), place(high)) for mean, (low, high) in values]
