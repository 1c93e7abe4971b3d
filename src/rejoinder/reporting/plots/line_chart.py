"""Lines with bands as an SVG file, for pages and papers.

The chart follows the reader's light or dark setting, uses dashes as well as colours, and describes
its numbers in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from rejoinder.reporting.plots.frame import Frame, Layout
from rejoinder.reporting.plots.lines import STYLES, Line, Point, draw_line
from rejoinder.reporting.plots.scales import Scale
from rejoinder.reporting.plots.svg import short, svg_file, tag, text
from rejoinder.reporting.tables import number

__all__ = ["Line", "LineChart", "line_chart_svg"]

LAYOUT = Layout(720, 424, 66, 24, 48, 56)
"""The legend goes below."""
ROW = 22
MAX_LABEL = 84
"""Characters of a label in the legend."""


@dataclass(frozen=True)
class LineChart:
    """Lines over common axes."""

    title: str
    x_name: str
    y_name: str
    lines: Sequence[Line]
    band: str = ""
    """Description of the bands."""
    percent: bool = False
    """Whether the x axis shows shares."""


def line_chart_svg(chart: LineChart) -> str:
    """Return the chart as the text of an SVG file."""
    points = [line.points() for line in chart.lines]
    defined = [point for line in points for point in line if point is not None]
    counted = all(float(p.x).is_integer() for p in defined)
    description = _description(chart, points)
    frame = Frame(
        Scale.around([p.x for p in defined], finest=1.0 if counted else 0.0),
        Scale.around(height for p in defined for height in (p.low, p.y, p.high)),
        chart.x_name,
        chart.y_name,
        description,
        LAYOUT,
    )
    lines = [mark for style, line in enumerate(points) for mark in draw_line(frame, style, line)]
    height = LAYOUT.height + ROW * (len(points) + bool(chart.band)) + 8
    marks = [*_axes(chart, frame), *lines, *_legend(chart, LAYOUT.height)]
    return svg_file(chart.title, description, LAYOUT.width, height, marks)


def _axes(chart: LineChart, frame: Frame) -> Iterator[Markup]:
    bottom, right = LAYOUT.height - LAYOUT.bottom, LAYOUT.width - LAYOUT.right
    middle = (LAYOUT.top + bottom) / 2
    yield text(chart.title, LAYOUT.left, 26, class_="head")
    for tick in frame.y.ticks:
        y = frame.at(frame.x.low, tick)[1]
        yield tag("path", class_="grid", d=f"M{LAYOUT.left} {short(y)}H{right}")
        yield text(frame.y.decimal(tick), LAYOUT.left - 8, y, dy=".35em", text_anchor="end")
    digits = frame.x.digits
    for tick in frame.x.ticks:
        x = frame.at(tick, frame.y.low)[0]
        yield tag("path", class_="axis", d=f"M{short(x)} {bottom}v5")
        name = f"{tick:.{max(0, digits - 2)}%}" if chart.percent else frame.x.decimal(tick)
        yield text(name, x, bottom + 20, text_anchor="middle")
    yield tag("path", class_="axis", d=f"M{LAYOUT.left} {LAYOUT.top}V{bottom}H{right}")
    yield text(chart.x_name, (LAYOUT.left + right) / 2, bottom + 42, text_anchor="middle")
    turned = f"rotate(-90 18 {short(middle)})"
    yield text(chart.y_name, 18, middle, text_anchor="middle", transform=turned)


def _legend(chart: LineChart, top: float) -> Iterator[Markup]:
    for style, line in enumerate(chart.lines):
        y = top + ROW * (style + 0.5)
        yield tag("path", class_=f"line c{style % STYLES}", d=f"M{LAYOUT.left} {short(y)}h36")
        cut = len(line.label) > MAX_LABEL
        label = line.label[: MAX_LABEL - 1] + "…" if cut else line.label
        yield text(label, LAYOUT.left + 46, y, dy=".35em")
    if chart.band:
        y = top + ROW * (len(chart.lines) + 0.5)
        yield text(f"band: {chart.band}", LAYOUT.left + 46, y, dy=".35em")


def _description(chart: LineChart, points: Sequence[Sequence[Point | None]]) -> str:
    """Return both ends of each line in words."""
    sentences = [f"{chart.y_name}, over {chart.x_name}."]
    for line, places in zip(chart.lines, points, strict=True):
        defined = [point for point in places if point is not None]
        if not defined:
            sentences.append(f"{line.label}: no values.")
            continue
        ends = [defined[0], *defined[1:][-1:]]
        values = (
            f"{number(p.y, 3)} at {f'{p.x:.0%}' if chart.percent else f'{p.x:,g}'}" for p in ends
        )
        sentences.append(f"{line.label}: {', '.join(values)}.")
    return " ".join(sentences)
