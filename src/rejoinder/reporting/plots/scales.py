"""From values to places: where an axis begins and ends, and which numbers stand on it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from rejoinder.reporting.tables import number


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
        low, high = _ends(values)
        room = spare * (high - low)
        low, high = low - room, high + room
        while True:
            step = _step((high - low) / wanted)
            first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
            if last > first:  # at least two numbers
                ticks, digits = _round_numbers(first, last, step)
                return cls(low, high, ticks, digits)
            wanted += 1

    @classmethod
    def around(cls, values: Iterable[float], wanted: int = 6, finest: float = 0.0) -> Scale:
        """An axis from one round number to another, with all of the values between them. No step is
        finer than ``finest``: there is no half of what is counted.

        >>> Scale.around([0.12, 0.49], 4).ticks
        (0.1, 0.2, 0.3, 0.4, 0.5)
        """
        low, high = _ends(values)
        step = _step(max((high - low) / wanted, finest))
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        ticks, digits = _round_numbers(first, last, step)
        return cls(ticks[0], ticks[-1], ticks, digits)

    def __call__(self, value: float) -> float:
        """Where the value lies, from 0 to 1."""
        return (value - self.low) / (self.high - self.low)

    def label(self, tick: float) -> str:
        return _written(tick, self.digits) if tick else "0"


def _ends(values: Iterable[float]) -> tuple[float, float]:
    """The lowest and the highest; some room around one that stands alone."""
    known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(known), max(known)
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-300):
        low, high = low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2
    return low, high


def _round_numbers(first: int, last: int, step: float) -> tuple[tuple[float, ...], int]:
    """So many steps, and how many digits after the point tell neighbours apart."""
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return tuple(round(at * step, digits) for at in range(first, last + 1)), digits


def _step(rough: float) -> float:
    """The next of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next((m * power for m in (1, 2, 5) if m * power >= rough * (1 - 1e-9)), 10 * power)
