"""From values to places: where an axis begins and ends, and which numbers stand on it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from rejoinder.report.tables import number


def shown(value: float | None, digits: int = 3) -> str:
    """A number as the page writes it: a real minus sign, and fewer digits after the point if there
    are many before it.

    >>> shown(-0.1234), shown(12.3456), shown(12345.678)
    ('−.123', '12.35', '12346')
    """
    before = 0 if value is None else max(0, len(str(int(abs(value)))) - 1)
    return _written(value, max(0, digits - before))


def _written(value: float | None, digits: int) -> str:
    return number(value, digits).replace("-", "−")


@dataclass(frozen=True)
class Scale:
    """Values from low to high, laid out over 0 to 1."""

    low: float
    high: float
    ticks: tuple[float, ...]
    digits: int

    @classmethod
    def over(cls, values: Iterable[float], wanted: int = 4, spare: float = 0.03) -> Scale:
        """An axis that has room for all of the values, and some ``spare`` on either side, with
        about ``wanted`` round numbers on it.

        >>> Scale.over([0.12, 0.49]).ticks
        (0.2, 0.3, 0.4, 0.5)
        """
        known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
        low, high = min(known), max(known)
        if high - low <= 1e-9 * max(abs(low), abs(high), 1e-300):
            low, high = low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2
        room = spare * (high - low)
        low, high = low - room, high + room
        ticks, digits = _round_numbers(low, high, wanted)
        return cls(low, high, ticks, digits)

    def __call__(self, value: float) -> float:
        """Where the value lies, from 0 to 1."""
        return (value - self.low) / (self.high - self.low)

    def label(self, tick: float) -> str:
        return _written(tick, self.digits) if tick else "0"


def _round_numbers(low: float, high: float, wanted: int) -> tuple[tuple[float, ...], int]:
    """About so many between low and high, at least two, and how many digits they have."""
    while True:
        step = _step((high - low) / wanted)
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last > first:
            digits = max(0, -math.floor(math.log10(step) + 1e-9))
            return tuple(round(at * step, digits) for at in range(first, last + 1)), digits
        wanted += 1


def _step(rough: float) -> float:
    """The next of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next((m * power for m in (1, 2, 5) if m * power >= rough * (1 - 1e-9)), 10 * power)
