"""Plots with two axes. Each is small enough to be read on a phone, and to stand beside others.

What a plot shows must also be said in words: ``label`` is what a screen reader says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from rejoinder.reporting.plots.scales import Scale
from rejoinder.reporting.plots.svg import colour, shape, short, tag

Floats = NDArray[np.float64]

WIDTH, HEIGHT = 360, 250
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 12, 42
LETTER = 6.6
"""About how wide a letter of a label is."""


@dataclass(frozen=True)
class Frame:
    """Two axes, their grid and their names."""

    x: Scale
    y: Scale
    across: str
    up: str
    label: str

    def at(self, x: float, y: float) -> tuple[float, float]:
        return (
            LEFT + (WIDTH - LEFT - RIGHT) * self.x(x),
            HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * self.y(y),
        )

    def draw(self, *marks: str) -> Markup:
        return tag(
            "svg",
            *self._grid(),
            *marks,
            class_="chart",
            viewBox=f"0 0 {WIDTH} {HEIGHT}",
            role="img",
            aria_label=self.label,
        )

    def _grid(self) -> list[Markup]:
        bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
        found = []
        for tick in self.y.ticks:
            y = self.at(self.x.low, tick)[1]
            found.append(tag("line", class_="grid", x1=LEFT, x2=right, y1=y, y2=y))
            found.append(tag("text", self.y.label(tick), x=LEFT - 7, y=y + 4, text_anchor="end"))
        for tick in self.x.ticks:
            x = self.at(tick, self.y.low)[0]
            found.append(tag("line", class_="grid", x1=x, x2=x, y1=TOP, y2=bottom))
            found.append(tag("text", self.x.label(tick), x=x, y=bottom + 16, text_anchor="middle"))
        middle = (LEFT + right) / 2
        found.append(
            tag("text", self.across, class_="name", x=middle, y=HEIGHT - 6, text_anchor="middle")
        )
        height = (TOP + bottom) / 2
        found.append(
            tag(
                "text",
                self.up,
                class_="name",
                text_anchor="middle",
                transform=f"translate(11 {short(height)}) rotate(-90)",
            )
        )
        return found


def scatter(
    frame: Frame, x: Floats, y: Floats, systems: NDArray[np.int64], names: Sequence[str]
) -> Markup:
    """A dot for each pair of values; one path for each system, for there may be thousands."""
    paths = []
    for system in range(len(names)):
        chosen = np.flatnonzero(systems == system)
        if chosen.size:
            places = (frame.at(x[i], y[i]) for i in chosen)
            steps = "".join(f"M{short(a)} {short(b)}h0" for a, b in places)
            paths.append(tag("path", class_=f"dots {colour(system)}", d=steps))
    return frame.draw(*paths)


def labelled(
    frame: Frame,
    points: Sequence[tuple[float, float]],
    systems: Sequence[int],
    names: Sequence[str],
) -> Markup:
    """A mark with its name for each system."""
    places = [frame.at(*point) for point in points]
    boxes = [(x - 7, y - 7, x + 7, y + 7) for x, y in places]
    marks = []
    for (x, y), system, name in zip(places, systems, names, strict=True):
        where = f"translate({short(x)} {short(y)})"
        marks.append(tag("path", class_=f"mark {colour(system)}", d=shape(system), transform=where))
        text_x, text_y, anchor, box = _free(x, y, len(name) * LETTER, boxes)
        boxes.append(box)
        marks.append(tag("text", name, class_="who", x=text_x, y=text_y, text_anchor=anchor))
    return frame.draw(*marks)


Box = tuple[float, float, float, float]


def _free(x: float, y: float, wide: float, taken: Sequence[Box]) -> tuple[float, float, str, Box]:
    """A place for a name beside its mark: the first of several that covers least of the others."""
    options = []
    for dx, dy, anchor in (
        (9, 4, "start"),
        (-9, 4, "end"),
        (0, -10, "middle"),
        (0, 19, "middle"),
        (9, -8, "start"),
        (9, 16, "start"),
        (-9, -8, "end"),
        (-9, 16, "end"),
        (4, -13, "start"),
        (4, 22, "start"),
        (4, 30, "start"),
    ):
        left = x + dx - {"start": 0.0, "end": wide, "middle": wide / 2}[anchor]
        top = y + dy - 10
        box = left, top, left + wide, top + 13
        outside = max(0.0, LEFT - left) + max(0.0, left + wide - WIDTH + 2)
        covered = sum(_overlap(box, other) for other in taken)
        options.append((covered + 50 * outside, x + dx, y + dy, anchor, box))
    _, text_x, text_y, anchor, box = min(options, key=lambda option: option[0])
    return text_x, text_y, anchor, box


def _overlap(a: Box, b: Box) -> float:
    wide = min(a[2], b[2]) - max(a[0], b[0])
    high = min(a[3], b[3]) - max(a[1], b[1])
    return wide * high if wide > 0 and high > 0 else 0.0


def histogram(frame: Frame, edges: Sequence[float], counts: Sequence[int]) -> Markup:
    """A bar for each bin."""
    bars = []
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        left, top = frame.at(low, count)
        right, bottom = frame.at(high, frame.y.low)
        if count:
            bars.append(
                tag(
                    "rect",
                    class_="bar",
                    x=left + 0.75,
                    y=top,
                    width=max(right - left - 1.5, 0.5),
                    height=bottom - top,
                )
            )
    return frame.draw(*bars)


@dataclass(frozen=True)
class Line:
    """A curve with a band around it, of one kind of line (0 solid, 1 dashed)."""

    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    kind: int = 0


def curve(frame: Frame, lines: Sequence[Line]) -> Markup:
    """Curves, each with its band."""
    marks = []
    for line in lines:
        upper = [frame.at(x, y) for x, y in zip(line.x, line.high, strict=True)]
        lower = [frame.at(x, y) for x, y in zip(line.x, line.low, strict=True)]
        marks.append(
            tag("path", class_=f"band line{line.kind}", d=_path(upper + lower[::-1]) + "Z")
        )
    for line in lines:
        middle = [frame.at(x, y) for x, y in zip(line.x, line.y, strict=True)]
        marks.append(tag("path", class_=f"line line{line.kind}", d=_path(middle)))
        dots = "".join(f"M{short(x)} {short(y)}h0" for x, y in middle)
        marks.append(tag("path", class_=f"beads line{line.kind}", d=dots))
    return frame.draw(*marks)


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{short(x)} {short(y)}" for x, y in points)
