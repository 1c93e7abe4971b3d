"""Curves with bands as an SVG picture, for pages and papers; no library is needed.

The picture follows the reader's light or dark setting, differs in dashes as well as in colour, and
has its numbers in words for those who can't see it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from xml.sax.saxutils import escape

from rejoinder.report.tables import number, printable

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
    across = _Axis.over([p.x for p in known], LEFT, WIDTH - RIGHT, finest=1.0 if counted else 0.0)
    heights = [height for p in known for height in (p.low, p.y, p.high)]
    upwards = _Axis.over(heights, TOP + PLOT, TOP)
    height = TOP + PLOT + BOTTOM + ROW * (len(points) + bool(chart.band)) + 8
    body = [*_frame(chart, across, upwards)]
    for which, line in enumerate(points):
        body += _curve(which, line, across, upwards)
    body += _legend(chart, TOP + PLOT + BOTTOM)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
            f' width="{WIDTH}" height="{height}" role="img" aria-labelledby="title words">',
            f'<title id="title">{_text(chart.title)}</title>',
            f'<desc id="words">{_text(_in_words(chart, points))}</desc>',
            f"<style>{_style()}</style>",
            f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
            *body,
            "</svg>\n",
        ]
    )


@dataclass(frozen=True)
class _Axis:
    """From values to places in the picture, with round numbers to write beside it."""

    ticks: list[float]
    start: float
    end: float

    @classmethod
    def over(
        cls, values: Sequence[float], start: float, end: float, *, finest: float = 0.0
    ) -> _Axis:
        """Some six steps, none finer than ``finest``: there is no half of what is counted."""
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        if high - low <= 1e-9 * max(-low, high):
            # one value: room around it, so that there is a scale
            room = max(abs(low), 1.0) / 2
            low, high = low - room, high + room
        rough = max((high - low) / 6, finest)
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * times for times in (1, 2, 5, 10) if unit * times >= rough)
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        return cls([n * step for n in range(first, last + 1)], start, end)

    def at(self, value: float) -> str:
        share = (value - self.ticks[0]) / (self.ticks[-1] - self.ticks[0])
        return f"{self.start + share * (self.end - self.start):.1f}"

    def name(self, tick: float, *, percent: bool = False) -> str:
        step = self.ticks[1] - self.ticks[0]
        if percent:
            return f"{tick:.{_digits(100 * step)}%}"
        return f"{tick:,.{_digits(step)}f}"


def _digits(step: float) -> int:
    """After the point, so that neighbours differ."""
    return max(0, -math.floor(math.log10(step) + 1e-9))


def _frame(chart: Chart, across: _Axis, upwards: _Axis) -> Iterator[str]:
    bottom, middle = TOP + PLOT, TOP + PLOT / 2
    yield f'<text class="head" x="{LEFT}" y="26">{_text(chart.title)}</text>'
    for tick in upwards.ticks:
        y = upwards.at(tick)
        yield f'<path class="grid" d="M{LEFT} {y}H{WIDTH - RIGHT}"/>'
        place = f'x="{LEFT - 8}" y="{y}" dy=".35em" text-anchor="end"'
        yield f"<text {place}>{upwards.name(tick)}</text>"
    for tick in across.ticks:
        x = across.at(tick)
        yield f'<path class="axis" d="M{x} {bottom}v5"/>'
        name = across.name(tick, percent=chart.percent)
        yield f'<text x="{x}" y="{bottom + 20}" text-anchor="middle">{name}</text>'
    yield f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{WIDTH - RIGHT}"/>'
    centre = (LEFT + WIDTH - RIGHT) / 2
    yield f'<text x="{centre}" y="{bottom + 42}" text-anchor="middle">{_text(chart.across)}</text>'
    turned = f'x="18" y="{middle}" text-anchor="middle" transform="rotate(-90 18 {middle})"'
    yield f"<text {turned}>{_text(chart.upwards)}</text>"


def _curve(
    which: int, line: Sequence[_Point | None], across: _Axis, upwards: _Axis
) -> Iterator[str]:
    """Each run of points without a gap, its band first."""
    kind = f"c{which % len(COLOURS)}"
    for known, run in groupby(line, key=lambda point: point is not None):
        points = [point for point in run if point is not None]
        if not known:
            continue
        there = [f"{across.at(p.x)},{upwards.at(p.high)}" for p in points]
        back = [f"{across.at(p.x)},{upwards.at(p.low)}" for p in reversed(points)]
        if any(p.low != p.high for p in points):
            yield f'<polygon class="band {kind}" points="{" ".join([*there, *back])}"/>'
        middle = " ".join(f"{across.at(p.x)},{upwards.at(p.y)}" for p in points)
        yield f'<polyline class="line {kind}" points="{middle}"/>'
        for p in points:
            yield f'<circle class="dot {kind}" cx="{across.at(p.x)}" cy="{upwards.at(p.y)}" r="2"/>'


def _legend(chart: Chart, top: float) -> Iterator[str]:
    for which, line in enumerate(chart.lines):
        y = top + ROW * (which + 0.5)
        yield f'<path class="line c{which % len(COLOURS)}" d="M{LEFT} {y}h36"/>'
        label = printable(line.label)
        short = label if len(label) <= MOST_LETTERS else label[: MOST_LETTERS - 1] + "…"
        yield f'<text x="{LEFT + 46}" y="{y}" dy=".35em">{_text(short)}</text>'
    if chart.band:
        y = top + ROW * (len(chart.lines) + 0.5)
        yield f'<text x="{LEFT + 46}" y="{y}" dy=".35em">band: {_text(chart.band)}</text>'


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


def _text(words: str) -> str:
    return escape(printable(words))
