"""Lines with bands, drawn in the report and in files alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from rejoinder.reporting.plots.frame import Frame
from rejoinder.reporting.plots.svg import short, tag

STYLES = 6
"""Different colours and dashes of lines; then they repeat."""


@dataclass(frozen=True)
class Point:
    """A point of a line with its band."""

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class Line:
    """A line; None and NaN leave a gap. Without ``low`` and ``high`` it has no band."""

    label: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()

    def points(self) -> list[Point | None]:
        """Return the points, None for gaps. A point without band has one of no width."""
        gaps = [None] * len(self.x)
        rows = zip(self.x, self.y, self.low or gaps, self.high or gaps, strict=True)
        return [_point(*row) for row in rows]


def _point(x: float, y: float | None, low: float | None, high: float | None) -> Point | None:
    if y is None or not math.isfinite(y):
        return None
    if low is None or high is None or not math.isfinite(low + high):
        return Point(x, y, y, y)
    return Point(x, y, low, high)


def draw_line(frame: Frame, style: int, points: Sequence[Point | None]) -> Iterator[Markup]:
    """Yield the marks of a line: for each run of points without a gap band, line and dots."""
    kind = f"c{style % STYLES}"
    for defined, run in groupby(points, key=lambda point: point is not None):
        segment = [point for point in run if point is not None]
        if not defined:
            continue
        upper = [(p.x, p.high) for p in segment]
        lower = [(p.x, p.low) for p in reversed(segment)]
        if any(p.low != p.high for p in segment):
            yield tag("polygon", class_=f"band {kind}", points=_places(frame, upper + lower))
        yield tag(
            "polyline", class_=f"line {kind}", points=_places(frame, [(p.x, p.y) for p in segment])
        )
        for p in segment:
            x, y = frame.at(p.x, p.y)
            yield tag("circle", class_=f"dot {kind}", cx=x, cy=y, r=2)


def _places(frame: Frame, values: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{short(x)},{short(y)}" for x, y in (frame.at(*pair) for pair in values))
