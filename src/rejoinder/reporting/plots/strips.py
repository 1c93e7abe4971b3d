"""A value with its interval on one line, as wide as its table cell.

Positions are in percent, so that lines stretch and marks don't.
"""

from __future__ import annotations

from markupsafe import Markup

from rejoinder.reporting.plots.scales import Scale
from rejoinder.reporting.plots.svg import colour, shape, tag

HEIGHT = 26


def _x(scale: Scale, value: float) -> str:
    return f"{100 * scale(value):.2f}%"


def strip(
    scale: Scale, value: float, low: float | None, high: float | None, system: int = -1
) -> Markup:
    """Return a mark and a line from low to high; the table beside it has the numbers."""
    grid = [
        tag("line", class_="grid", x1=_x(scale, t), x2=_x(scale, t), y1=0, y2=HEIGHT)
        for t in scale.ticks
    ]
    middle = HEIGHT / 2
    line = []
    if low is not None and high is not None:
        ends = {"x1": _x(scale, low), "x2": _x(scale, high)}
        line = [tag("line", class_="whisker", y1=middle, y2=middle, **ends)]
    mark = tag("svg", tag("path", d=shape(system)), class_="mark", x=_x(scale, value), y=middle)
    return tag(
        "svg",
        *grid,
        *line,
        mark,
        class_=f"strip {colour(system)}",
        height=HEIGHT,
        aria_hidden="true",
        focusable="false",
    )


def strip_axis(scale: Scale) -> Markup:
    """Return the tick labels of a column of strips."""
    labels = [
        tag("text", scale.label(t), x=_x(scale, t), y=12, text_anchor="middle") for t in scale.ticks
    ]
    return tag(
        "svg", *labels, class_="strip axis", height=16, aria_hidden="true", focusable="false"
    )
