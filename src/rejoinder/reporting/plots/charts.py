"""The plots of the report: scatter plots, systems with names, histograms and lines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from rejoinder.reporting.plots.frame import Frame
from rejoinder.reporting.plots.lines import Line, draw_line
from rejoinder.reporting.plots.svg import colour, shape, short, tag

Floats = NDArray[np.float64]

LETTER = 6.6
"""About the width of a character of a label."""


def scatter(frame: Frame, x: Floats, y: Floats, systems: NDArray[np.int64]) -> Markup:
    """Return a dot for each pair of values, with one path per system for a small page."""
    paths = []
    order = np.argsort(systems, kind="stable")
    present, starts = np.unique(systems[order], return_index=True)
    for system, chosen in zip(present.tolist(), np.split(order, starts[1:]), strict=False):
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
    """Return a mark with its name for each system."""
    places = [frame.at(*point) for point in points]
    boxes = [(x - 7, y - 7, x + 7, y + 7) for x, y in places]
    marks = []
    for (x, y), system, name in zip(places, systems, names, strict=True):
        where = f"translate({short(x)} {short(y)})"
        marks.append(tag("path", class_=f"mark {colour(system)}", d=shape(system), transform=where))
        text_x, text_y, anchor, box = _free_place(frame, x, y, len(name) * LETTER, boxes)
        boxes.append(box)
        marks.append(tag("text", name, class_="who", x=text_x, y=text_y, text_anchor=anchor))
    return frame.draw(*marks)


Box = tuple[float, float, float, float]


def _free_place(
    frame: Frame, x: float, y: float, width: float, taken: Sequence[Box]
) -> tuple[float, float, str, Box]:
    """Return the place for a name beside its mark that covers least of the others."""
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
        left = x + dx - {"start": 0.0, "end": width, "middle": width / 2}[anchor]
        top = y + dy - 10
        box = left, top, left + width, top + 13
        outside = max(0.0, frame.layout.left - left)
        outside += max(0.0, left + width - frame.layout.width + 2)
        covered = sum(_overlap(box, other) for other in taken)
        options.append((covered + 50 * outside, x + dx, y + dy, anchor, box))
    _, text_x, text_y, anchor, box = min(options, key=lambda option: option[0])
    return text_x, text_y, anchor, box


def _overlap(a: Box, b: Box) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return width * height if width > 0 and height > 0 else 0.0


def histogram(frame: Frame, edges: Sequence[float], counts: Sequence[int]) -> Markup:
    """Return a bar for each bin."""
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


def line_plot(frame: Frame, lines: Sequence[Line]) -> Markup:
    """Return lines with their bands."""
    return frame.draw(
        *(m for style, line in enumerate(lines) for m in draw_line(frame, style, line.points()))
    )
