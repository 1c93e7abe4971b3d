"""Curves with bands as an SVG picture, for pages and papers; no library is needed.

The picture follows the reader's light or dark setting, differs in dashes as well as in colour, and
has its numbers in words for those who can't see it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from rejoinder.reporting.plots.scales import Scale
from rejoinder.reporting.plots.svg import short, tag
from rejoinder.reporting.tables import number, printable

WIDTH, PLOT = 720, 320
"""Of the picture, and the height of what is inside the axes; the legend goes below."""
LEFT, RIGHT, TOP, BOTTOM, ROW = 66, 24, 48, 56, 22
MOST_LETTERS = 84
"""Of a label, in one row of the legend."""

# told apart by people who see few colours, on white and on black
COLOURS = ("#0072b2", "#d55e00", "#00805d", "#a83279", "#7a5c00", "#444444")
ON_DARK = ("#56b4e9", "#ff9950", "#2ecc9b", "#f09ac5", "#e5c100", "#bbbbbb")
DASHES = ("", "8 4", "2 3", "8 3 2 3", "12 3", "4 4")


@dataclass(frozen=True)
class Line:
    """A curve; what is None or no number leaves a gap. Without ``low`` and ``high`` no band."""

    label: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()

    def points(self) -> list[_Point | None]:
        """None where there is a gap. A point without a spread has a band of no width."""
        gaps = [None] * len(self.x)
        rows = zip(self.x, self.y, self.low or gaps, self.high or gaps, strict=True)
        return [_Point.of(*row) for row in rows]


@dataclass(frozen=True)
class _Point:
    x: float
    y: float
    low: float
    high: float

    @classmethod
    def of(cls, x: float, y: float | None, low: float | None, high: float | None) -> _Point | None:
        if y is None or not math.isfinite(y):
            return None
        if low is None or high is None or not math.isfinite(low + high):
            return cls(x, y, y, y)
        return cls(x, y, low, high)


@dataclass(frozen=True)
class Chart:
    """Lines over common axes."""

    title: str
    across: str
    """What the axis to the right shows."""
    upwards: str
    lines: Sequence[Line]
    band: str = ""
    """What the bands mean."""
    percent: bool = False
    """Whether the axis to the right shows shares."""


def svg(chart: Chart) -> str:
    """The picture as a file of its own."""
    points = [line.points() for line in chart.lines]
    known = [point for line in points for point in line if point is not None]
    counted = all(float(p.x).is_integer() for p in known)
    frame = _Frame(
        Scale.around([p.x for p in known], finest=1.0 if counted else 0.0),
        Scale.around(height for p in known for height in (p.low, p.y, p.high)),
    )
    curves = [mark for which, line in enumerate(points) for mark in _curve(which, line, frame)]
    height = TOP + PLOT + BOTTOM + ROW * (len(points) + bool(chart.band)) + 8
    picture = tag(
        "svg",
        tag("title", printable(chart.title), id="title"),
        tag("desc", printable(_in_words(chart, points)), id="words"),
        tag("style", Markup(_style())),
        tag("rect", class_="paper", width=WIDTH, height=height),
        *_axes(chart, frame),
        *curves,
        *_legend(chart, TOP + PLOT + BOTTOM),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height}",
        width=WIDTH,
        height=height,
        role="img",
        aria_labelledby="title words",
    )
    # an element a line, so that changes can be seen
    return f"{picture}\n".replace("><", ">\n<")


@dataclass(frozen=True)
class _Frame:
    """From values to places in the picture."""

    across: Scale
    upwards: Scale

    def x(self, value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * self.across(value)

    def y(self, value: float) -> float:
        return TOP + PLOT - PLOT * self.upwards(value)

    def points(self, places: Iterable[tuple[float, float]]) -> str:
        return " ".join(f"{short(self.x(x))},{short(self.y(y))}" for x, y in places)


def _axes(chart: Chart, frame: _Frame) -> Iterator[Markup]:
    bottom, right, middle = TOP + PLOT, WIDTH - RIGHT, TOP + PLOT / 2
    yield _words(chart.title, LEFT, 26, class_="head")
    for tick in frame.upwards.ticks:
        y = frame.y(tick)
        yield tag("path", class_="grid", d=f"M{LEFT} {short(y)}H{right}")
        name = f"{tick:,.{frame.upwards.digits}f}"
        yield _words(name, LEFT - 8, y, dy=".35em", text_anchor="end")
    digits = frame.across.digits
    for tick in frame.across.ticks:
        x = frame.x(tick)
        yield tag("path", class_="axis", d=f"M{short(x)} {bottom}v5")
        name = f"{tick:.{max(0, digits - 2)}%}" if chart.percent else f"{tick:,.{digits}f}"
        yield _words(name, x, bottom + 20, text_anchor="middle")
    yield tag("path", class_="axis", d=f"M{LEFT} {TOP}V{bottom}H{right}")
    yield _words(chart.across, (LEFT + right) / 2, bottom + 42, text_anchor="middle")
    turned = f"rotate(-90 18 {short(middle)})"
    yield _words(chart.upwards, 18, middle, text_anchor="middle", transform=turned)


def _curve(which: int, line: Sequence[_Point | None], frame: _Frame) -> Iterator[Markup]:
    """Each run of points without a gap, its band first."""
    kind = f"c{which % len(COLOURS)}"
    for known, run in groupby(line, key=lambda point: point is not None):
        points = [point for point in run if point is not None]
        if not known:
            continue
        there = [(p.x, p.high) for p in points]
        back = [(p.x, p.low) for p in reversed(points)]
        if any(p.low != p.high for p in points):
            yield tag("polygon", class_=f"band {kind}", points=frame.points(there + back))
        middle = frame.points((p.x, p.y) for p in points)
        yield tag("polyline", class_=f"line {kind}", points=middle)
        for p in points:
            yield tag("circle", class_=f"dot {kind}", cx=frame.x(p.x), cy=frame.y(p.y), r=2)


def _legend(chart: Chart, top: float) -> Iterator[Markup]:
    for which, line in enumerate(chart.lines):
        y = top + ROW * (which + 0.5)
        yield tag("path", class_=f"line c{which % len(COLOURS)}", d=f"M{LEFT} {short(y)}h36")
        cut = len(line.label) > MOST_LETTERS
        label = line.label[: MOST_LETTERS - 1] + "…" if cut else line.label
        yield _words(label, LEFT + 46, y, dy=".35em")
    if chart.band:
        y = top + ROW * (len(chart.lines) + 0.5)
        yield _words(f"band: {chart.band}", LEFT + 46, y, dy=".35em")


def _words(text: str, x: float, y: float, **attributes: str) -> Markup:
    return tag("text", printable(text), x=x, y=y, **attributes)


def _in_words(chart: Chart, points: Sequence[Sequence[_Point | None]]) -> str:
    """Both ends of each line, for those who can't see it."""
    words = [f"{chart.upwards}, over {chart.across}."]
    for line, places in zip(chart.lines, points, strict=True):
        known = [point for point in places if point is not None]
        if not known:
            words.append(f"{line.label}: nothing is known.")
            continue
        ends = [known[0], *known[1:][-1:]]
        told = (
            f"{number(p.y, 3)} at {f'{p.x:.0%}' if chart.percent else f'{p.x:,g}'}" for p in ends
        )
        words.append(f"{line.label}: {', '.join(told)}.")
    return " ".join(words)


def _style() -> str:
    """Colours by class, others where the reader prefers dark pages."""
    rules = [
        "svg{color:#1f2328;font:13px system-ui,sans-serif}",
        "text{fill:currentColor}.head{font-size:15px;font-weight:600}",
        ".paper{fill:#fff}.axis{fill:none;stroke:currentColor}",
        ".grid{stroke:currentColor;opacity:.15}",
        ".line{fill:none;stroke-width:2}.band{opacity:.2;stroke:none}",
        *(f".line.c{n}{{stroke-dasharray:{dash}}}" for n, dash in enumerate(DASHES) if dash),
        *_coloured(COLOURS),
        "@media (prefers-color-scheme:dark){svg{color:#e6edf3}.paper{fill:#0d1117}",
        *_coloured(ON_DARK),
        "}",
    ]
    return "".join(rules)


def _coloured(colours: Sequence[str]) -> Iterator[str]:
    for n, colour in enumerate(colours):
        yield f".line.c{n}{{stroke:{colour}}}.band.c{n},.dot.c{n}{{fill:{colour}}}"
