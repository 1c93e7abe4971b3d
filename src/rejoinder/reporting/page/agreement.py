"""Agreement with people in the report: the table of correlations, and plots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from rejoinder.meta_evaluation.correlate import Correlations, Estimate
from rejoinder.meta_evaluation.evaluation import MetaEvaluation, MetricResult
from rejoinder.meta_evaluation.reference_curve import CurvePoint
from rejoinder.reporting.meta_tables import annotator_facts
from rejoinder.reporting.page.analysis import Analysis
from rejoinder.reporting.page.rankings import MAX_SYSTEMS, interval
from rejoinder.reporting.plots.charts import labelled, line_plot, scatter
from rejoinder.reporting.plots.frame import Frame
from rejoinder.reporting.plots.lines import Line
from rejoinder.reporting.plots.scales import Scale, shown
from rejoinder.reporting.plots.strips import strip, strip_axis
from rejoinder.reporting.tables import p_value

Floats = NDArray[np.float64]

MAX_PLOTS = 24
"""Metrics that are plotted."""
MAX_DOTS, MAX_DOTS_PER_PLOT = 15_000, 1_200
"""Dots of all scatter plots, to limit the size of the page, and of one, to be readable."""
JITTER, MIN_JITTER, MAX_JITTER = 0.25, 0.012, 0.05
"""Standard deviation of the jitter of ratings in steps between neighbouring ones, and its limits as
shares of their range."""
MAX_LABELLED = 12
STATISTICS = (("spearman", "Spearman"), ("pearson", "Pearson"))


@dataclass(frozen=True)
class Figure:
    """A plot with its title."""

    svg: Markup
    title: str
    caption: str = ""


@dataclass(frozen=True)
class CorrelationRow:
    """One metric in a table of correlations."""

    metric: str
    cells: list[tuple[str, str, str, str]]
    """For each statistic value, stars, interval and p."""
    best: list[bool]
    strip: Markup | None
    n: str
    unscored: str


@dataclass(frozen=True)
class CorrelationTable:
    """Correlations of the metrics, with the axis of their plots."""

    rows: list[CorrelationRow]
    axis: Markup | None


def stars(p: float | None) -> str:
    """Return ** for p < .01, * for p < .05."""
    return "" if p is None or p >= 0.05 else "**" if p < 0.01 else "*"


def correlation_table(
    results: Sequence[MetricResult], pick: Callable[[MetricResult], Correlations | None]
) -> CorrelationTable:
    """Return a row for each result for which ``pick`` returns correlations."""
    rows = [(r, correlations) for r in results if (correlations := pick(r)) is not None]
    columns = [[getattr(correlations, name) for _, correlations in rows] for name, _ in STATISTICS]
    best = [max((e.value for e in col if e.value is not None), default=None) for col in columns]
    first: list[Estimate] = columns[0]
    ends = [v for e in first for v in (e.value, e.low, e.high) if v is not None]
    scale = Scale.over([0.0, *ends])
    shown_rows = []
    for (result, correlations), row in zip(rows, zip(*columns, strict=True), strict=True):
        e = row[0]
        shown_rows.append(
            CorrelationRow(
                result.metric,
                [
                    (shown(c.value), stars(c.p), interval(c.low, c.high, 2), p_value(c.p))
                    for c in row
                ],
                [
                    len(rows) > 1 and c.value is not None and c.value == top
                    for c, top in zip(row, best, strict=True)
                ],
                None if e.value is None else strip(scale, e.value, e.low, e.high),
                f"{correlations.n:,}",
                f"{result.unscored:,}" if result.unscored else "",
            )
        )
    return CorrelationTable(shown_rows, strip_axis(scale) if ends else None)


def annotators(evaluation: MetaEvaluation) -> str:
    """Return a sentence about the agreement of the annotators."""
    return "" if evaluation.humans is None else annotator_facts(evaluation.humans) + "."


def scatters(analysis: Analysis, names: Sequence[str]) -> list[Figure]:
    """Return plots of metrics against people, with jitter so that dots do not hide each other."""
    joined = analysis.agreement.joined
    owner = _owners(analysis)
    rng = np.random.default_rng(analysis.settings.seed)
    figures = []
    max_dots = min(MAX_DOTS // max(1, len(names)), MAX_DOTS_PER_PLOT)
    for name in names:
        scores = joined.item_scores[name]
        rated = np.flatnonzero(~np.isnan(scores + joined.human))
        if not rated.size:
            continue
        drawn = np.sort(rng.permutation(rated)[:max_dots])
        human = joined.human[drawn]
        jittered = human + rng.normal(0, _noise(human), len(human))
        value = _correlation(analysis.agreement.items, name)
        frame = Frame(
            Scale.over(jittered.tolist(), 5),
            Scale.over(scores[drawn].tolist()),
            "average rating",
            "",
            f"Scatter plot of {name} against the average rating by people, {len(drawn):,} replies."
            f" Spearman correlation {value}.",
        )
        caption = f"Spearman {value}"
        caption += f"; {len(drawn):,} of {rated.size:,} replies" if len(drawn) < rated.size else ""
        figures.append(Figure(scatter(frame, jittered, scores[drawn], owner[drawn]), name, caption))
    return figures


def _owners(analysis: Analysis) -> NDArray[np.int64]:
    """Return the number of the system of each item that agreement is computed over."""
    numbers = analysis.data.numbers
    return np.array([numbers[item.system] for item in analysis.agreement.joined.items], np.int64)


def _noise(ratings: Floats) -> float:
    steps = np.diff(np.unique(ratings))
    if not steps.size:
        return 0.0
    return float(
        np.clip(JITTER * steps.min() / np.ptp(ratings), MIN_JITTER, MAX_JITTER) * np.ptp(ratings)
    )


def _correlation(evaluation: MetaEvaluation | None, name: str) -> str:
    results = evaluation.results if evaluation else []
    result = next((r for r in results if r.metric == name), None)
    if result is None:
        return "–"
    e = result.correlations.spearman
    return f"{shown(e.value)}{stars(e.p)} {interval(e.low, e.high, 2)}".strip()


@dataclass(frozen=True)
class SystemTable:
    """The numbers of system-level plots."""

    columns: list[str]
    rows: list[list[str]]
    more: int
    """Systems without a row."""


def system_plots(analysis: Analysis, names: Sequence[str]) -> tuple[list[Figure], SystemTable]:
    """Return plots and a table of each system's average score against its average rating."""
    joined = analysis.agreement.joined
    systems = analysis.data.systems
    owner = _owners(analysis)
    figures: list[Figure] = []
    columns: list[dict[int, tuple[float, float]]] = []
    for name in names:
        scores = joined.item_scores[name]
        rated = np.flatnonzero(~np.isnan(scores + joined.human))
        order = rated[np.argsort(owner[rated], kind="stable")]
        present, starts = np.unique(owner[order], return_index=True)
        groups = np.split(order, starts[1:]) if len(present) else []
        with np.errstate(over="ignore"):
            means = {
                number: (float(joined.human[own].mean()), float(scores[own].mean()))
                for number, own in zip(present.tolist(), groups, strict=True)
            }
        columns.append(means)
        if len(means) < 2:
            continue
        value = _correlation(analysis.agreement.systems, name)
        sentence = "" if value == "–" else f" Spearman correlation {value}."
        frame = Frame(
            _roomy([x for x, _ in means.values()]),
            _roomy([y for _, y in means.values()]),
            "average rating",
            "",
            f"Average {name} against the average rating of {len(means)} systems.{sentence}",
        )
        if len(means) > MAX_SYSTEMS:
            x, y = np.array(list(means.values())).T
            svg = scatter(frame, x, y, np.array(list(means), np.int64))
        else:
            few = len(means) <= MAX_LABELLED
            labels = [_short(systems[n]) if few else "" for n in means]
            svg = labelled(frame, list(means.values()), list(means), labels)
        figures.append(Figure(svg, name, f"Spearman {value}" if sentence else ""))
    rows = [
        [
            system,
            shown(next((c[number][0] for c in columns if number in c), None)),
            *(shown(c[number][1]) if number in c else "–" for c in columns),
        ]
        for number, system in enumerate(systems[:MAX_SYSTEMS])
    ]
    more = max(0, len(systems) - MAX_SYSTEMS)
    return figures, SystemTable(["system", "people", *names], rows, more)


def _roomy(values: Sequence[float]) -> Scale:
    """Return an axis with room for names beside the marks."""
    return Scale.over(values, spare=0.12)


def _short(name: str) -> str:
    return name if len(name) <= 18 else f"{name[:17]}…"


def curve_plots(curves: Mapping[str, Sequence[CurvePoint]]) -> list[Figure]:
    """Return plots of correlation by number of references, all metrics on one scale."""
    points = [point for some in curves.values() for point in some]
    ends = [v for p in points for side in (p.low, p.high, p.mean) for v in side.values()]
    if not ends:
        return []
    defined = {name: some for name, some in curves.items() if any(p.mean for p in some)}
    y = Scale.over([0.0, *ends])
    figures = []
    for name, some in list(defined.items())[:MAX_PLOTS]:
        lines = []
        for statistic, label in STATISTICS:
            has = [p for p in some if all(statistic in s for s in (p.mean, p.low, p.high))]
            x = [float(p.references) for p in has]
            of = [[getattr(p, side)[statistic] for p in has] for side in ("mean", "low", "high")]
            lines.append(Line(label, x, of[0], of[1], of[2]))
        values = ", ".join(f"{p.references}: {shown(p.mean.get('spearman'))}" for p in some)
        frame = Frame(
            _counts([p.references for p in some]),
            y,
            "references",
            "correlation",
            f"{name}: Spearman correlation with people by number of references: {values}.",
        )
        figures.append(Figure(line_plot(frame, lines), name))
    return figures


def _counts(numbers: Sequence[int]) -> Scale:
    """Return an axis of whole numbers."""
    low, high = min(numbers), max(numbers)
    if low == high:
        return Scale(low - 1.0, high + 1.0, (float(low),), 0)
    step = max(1, -(-(high - low) // 6))
    ticks = tuple(float(n) for n in range(low, high + 1, step))
    return Scale(float(low), float(high), ticks, 0)


def curve_rows(curves: Mapping[str, Sequence[CurvePoint]]) -> list[list[str]]:
    """Return the numbers of the curves."""
    return [
        [
            name,
            str(point.references),
            *(
                f"{shown(point.mean.get(s))} {interval(point.low.get(s), point.high.get(s), 2)}"
                for s, _ in STATISTICS
            ),
        ]
        for name, some in curves.items()
        for point in some
    ]
