"""Axes: from values to positions, and the round numbers to show."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from rejoinder.reporting.tables import number

LARGEST = 1e300
"""Values beyond are drawn at the edge: the range of an axis must not overflow."""
SMALLEST = 1e-290
"""A smaller range is that of one value: steps would be denormal numbers."""
MAX_DIGITS, MAX_TICK = 5, 1e6
"""Ticks with more decimals, or larger ones, are written with an exponent."""


def shown(value: float | None, digits: int = 3) -> str:
    """Return a number as the report writes it: with a minus sign, and fewer decimals if large.

    >>> shown(-0.1234), shown(12.3456), shown(12345.678)
    ('−.123', '12.35', '12346')
    """
    if value is None or not math.isfinite(value):
        return "–"
    before = max(0, math.floor(math.log10(abs(value)))) if abs(value) >= 1 else 0
    return _minus(number(value, max(0, digits - before) if abs(value) < MAX_TICK else digits))


def _minus(text: str) -> str:
    return text.replace("-", "−")


@dataclass(frozen=True)
class Scale:
    """Linear scale of the values from ``low`` to ``high`` over positions from 0 to 1."""

    low: float
    high: float
    ticks: tuple[float, ...]
    digits: int

    @classmethod
    def over(cls, values: Iterable[float], wanted: int = 4, spare: float = 0.03) -> Scale:
        """Return an axis around the values with a ``spare`` share of room on either side, and
        about ``wanted`` ticks.

        >>> Scale.over([0.12, 0.49]).ticks
        (0.2, 0.3, 0.4, 0.5)
        """
        low, high = _range(values)
        room = spare * (high - low)
        low, high = low - room, high + room
        while True:
            step = _step((high - low) / wanted)
            first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
            if last > first:  # at least two ticks
                ticks, digits = _ticks(first, last, step)
                return cls(low, high, ticks, digits)
            wanted += 1

    @classmethod
    def around(cls, values: Iterable[float], wanted: int = 6, finest: float = 0.0) -> Scale:
        """Return an axis from one tick to another that contains the values.

        Steps are at least ``finest``, such as 1 for counts.

        >>> Scale.around([0.12, 0.49], 4).ticks
        (0.1, 0.2, 0.3, 0.4, 0.5)
        """
        low, high = _range(values)
        step = _step(max((high - low) / wanted, finest))
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        ticks, digits = _ticks(first, last, step)
        return cls(ticks[0], ticks[-1], ticks, digits)

    def __call__(self, value: float) -> float:
        """Return the position of a value; values beyond LARGEST are at the edge."""
        if abs(value) <= LARGEST:
            return (value - self.low) / (self.high - self.low)
        return 0.0 if value < 0 else 1.0

    def label(self, tick: float) -> str:
        """Return the text of a tick."""
        if not tick:
            return "0"
        if self._plain():
            return _minus(number(tick, self.digits))
        return _minus(self._exponent(tick))

    def decimal(self, tick: float) -> str:
        """Return the text of a tick with all decimals: ``0.50`` instead of ``.5``."""
        return f"{tick:,.{self.digits}f}" if self._plain() else self._exponent(tick)

    def _plain(self) -> bool:
        return self.digits <= MAX_DIGITS and max(abs(self.low), abs(self.high)) < MAX_TICK

    def _exponent(self, tick: float) -> str:
        """Write a tick with as many digits as distinguish it from its neighbours."""
        step = min(b - a for a, b in zip(self.ticks, self.ticks[1:], strict=False))
        largest = max(abs(self.ticks[0]), abs(self.ticks[-1]))
        digits = math.floor(math.log10(largest)) - math.floor(math.log10(step) + 1e-9) + 1
        return f"{tick:.{max(1, min(digits, 12))}g}"


def _range(values: Iterable[float]) -> tuple[float, float]:
    """Return the lowest and the highest value, with room around a single value."""
    finite = [min(max(v, -LARGEST), LARGEST) for v in values if math.isfinite(v)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    largest = max(abs(low), abs(high))
    if high - low <= max(1e-9 * largest, SMALLEST):
        room = largest / 2 if largest > SMALLEST else 0.5
        low, high = low - room, high + room
    return low, high


def _ticks(first: int, last: int, step: float) -> tuple[tuple[float, ...], int]:
    """Return the multiples of ``step`` from first to last, and the decimals that they need."""
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return tuple(round(at * step, digits) for at in range(first, last + 1)), digits


def _step(rough: float) -> float:
    """Return the next of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next((m * power for m in (1, 2, 5) if m * power >= rough * (1 - 1e-9)), 10 * power)
