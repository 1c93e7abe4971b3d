"""Values with intervals, one row each, as an SVG file: rankings of systems and correlations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from rejoinder.meta_evaluation.correlate import Statistic
from rejoinder.meta_evaluation.evaluation import MetaEvaluation
from rejoinder.meta_evaluation.ranking import Ranking
from rejoinder.reporting.plots.scales import Scale, shown
from rejoinder.reporting.plots.svg import short, svg_file, tag, text

WIDTH, RIGHT, TOP, BOTTOM, ROW = 720, 24, 48, 44, 24
MAX_ROWS = 40
MAX_LABEL = 36
"""Characters of a label."""
LETTER = 7.2
"""About the width of a character."""


@dataclass(frozen=True)
class IntervalRow:
    """A value with its interval."""

    label: str
    value: float
    low: float | None
    high: float | None
    remark: str = ""
    color: int = 0


def ranking_svg(ranking: Ranking) -> str:
    """Return the systems of a ranking with their 95 % intervals as an SVG file."""
    rows = [
        IntervalRow(row.system, row.value, row.low, row.high, row.group) for row in ranking.systems
    ]
    direction = "" if ranking.higher_is_better else ", lower is better"
    title = f"Systems by {ranking.by}{direction}" if ranking.by else "Systems"
    return interval_svg(title, f"{ranking.by or 'value'}, 95 % interval", rows)


def correlations_svg(evaluation: MetaEvaluation, statistic: Statistic = "spearman") -> str:
    """Return the correlation of each metric with people as an SVG file."""
    rows = []
    for result in evaluation.results:
        estimate = getattr(result.correlations, statistic)
        if estimate.value is not None:
            rows.append(IntervalRow(result.metric, estimate.value, estimate.low, estimate.high))
    name = statistic.capitalize()
    return interval_svg("Correlation with people", f"{name} correlation, 95 % interval", rows, 0.0)


def interval_svg(
    title: str, x_name: str, rows: Sequence[IntervalRow], origin: float | None = None
) -> str:
    """Return rows of values with intervals as an SVG file; the axis contains the ``origin``."""
    finite = [row for row in rows if math.isfinite(row.value)]
    some = finite[:MAX_ROWS]
    ends = [v for row in some for v in (row.value, row.low, row.high) if v is not None]
    scale = Scale.over([*ends, *([] if origin is None else [origin])], 6)
    longest = max((len(_label(row.label)) for row in some), default=0)
    left = 24 + LETTER * longest
    sentences = [f"{x_name}."]
    sentences += [f"{row.label}: {shown(row.value)}." for row in some]
    more = len(finite) - len(some)
    sentences += [f"{more:,} more are not shown."] if more else []
    height = TOP + ROW * len(some) + BOTTOM + (ROW if more else 0)
    marks = [*_axis(title, x_name, scale, left, len(some)), *_rows(some, scale, left)]
    if more:
        marks.append(text(f"{more:,} more are not shown", 12, height - 12))
    return svg_file(title, " ".join(sentences), WIDTH, height, marks)


def _label(label: str) -> str:
    return label if len(label) <= MAX_LABEL else label[: MAX_LABEL - 1] + "…"


def _x(scale: Scale, value: float, left: float) -> float:
    return left + (WIDTH - left - RIGHT - 40) * scale(value)


def _axis(title: str, x_name: str, scale: Scale, left: float, rows: int) -> Iterator[Markup]:
    yield text(title, 12, 26, class_="head")
    bottom = TOP + ROW * rows
    for tick in scale.ticks:
        x = _x(scale, tick, left)
        yield tag("path", class_="grid", d=f"M{short(x)} {TOP}V{bottom}")
        yield text(scale.label(tick), x, bottom + 16, text_anchor="middle")
    yield text(x_name, (left + WIDTH - RIGHT) / 2, bottom + 36, text_anchor="middle")


def _rows(rows: Sequence[IntervalRow], scale: Scale, left: float) -> Iterator[Markup]:
    for number, row in enumerate(rows):
        y = TOP + ROW * (number + 0.5)
        yield text(_label(row.label), left - 12, y, dy=".35em", text_anchor="end")
        if row.low is not None and row.high is not None and math.isfinite(row.low + row.high):
            ends = [short(_x(scale, end, left)) for end in (row.low, row.high)]
            yield tag("path", class_=f"line c{row.color}", d=f"M{ends[0]} {short(y)}H{ends[1]}")
        yield tag("circle", class_=f"dot c{row.color}", cx=_x(scale, row.value, left), cy=y, r=4)
        if row.remark:
            yield text(row.remark, WIDTH - RIGHT, y, dy=".35em", text_anchor="end")
