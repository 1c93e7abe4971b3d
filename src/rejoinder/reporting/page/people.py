"""Agreement with people as the page shows it: the papers' table, and their plots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from rejoinder.meta_evaluation.correlate import Correlations, Estimate
from rejoinder.meta_evaluation.curves import Point
from rejoinder.meta_evaluation.study import Result, Study
from rejoinder.reporting.agreement import annotator_facts
from rejoinder.reporting.page.findings import Findings
from rejoinder.reporting.page.ranks import interval
from rejoinder.reporting.plots.charts import Frame, Line, curve, labelled, scatter
from rejoinder.reporting.plots.scales import Scale, shown
from rejoinder.reporting.plots.strips import strip, strip_axis
from rejoinder.reporting.tables import p_value

Floats = NDArray[np.float64]

MOST_PLOTS = 24
"""Metrics that are plotted."""
MOST_DOTS, MOST_DOTS_A_PLOT = 15_000, 1_200
"""In all scatter plots together, for the page's size; in one, for the reader's eyes."""
JITTER, LEAST, MOST = 0.25, 0.012, 0.05
"""Standard deviation of the noise on ratings: in steps between neighbouring ones, but at least and
at most so much of their range."""
MOST_LABELLED = 12
STATISTICS = (("spearman", "Spearman"), ("pearson", "Pearson"))


@dataclass(frozen=True)
class Figure:
    svg: Markup
    title: str
    caption: str = ""


@dataclass(frozen=True)
class Correlated:
    metric: str
    cells: list[tuple[str, str, str, str]]
    """For each statistic the value, its marks, its interval, and its p."""
    best: list[bool]
    strip: Markup | None
    n: str
    unscored: str


@dataclass(frozen=True)
class CorrelationTable:
    rows: list[Correlated]
    axis: Markup | None


def marks(p: float | None) -> str:
    """As papers mark them: ** for p < .01, * for p < .05."""
    return "" if p is None or p >= 0.05 else "**" if p < 0.01 else "*"


def correlation_table(
    results: Sequence[Result], pick: Callable[[Result], Correlations | None]
) -> CorrelationTable:
    rows = [(r, found) for r in results if (found := pick(r)) is not None]
    columns = [[getattr(found, name) for _, found in rows] for name, _ in STATISTICS]
    best = [max((e.value for e in col if e.value is not None), default=None) for col in columns]
    first: list[Estimate] = columns[0]
    ends = [v for e in first for v in (e.value, e.low, e.high) if v is not None]
    scale = Scale.over([0.0, *ends])
    shown_rows = []
    for (result, found), row in zip(rows, zip(*columns, strict=True), strict=True):
        e = row[0]
        shown_rows.append(
            Correlated(
                result.metric,
                [
                    (shown(c.value), marks(c.p), interval(c.low, c.high, 2), p_value(c.p))
                    for c in row
                ],
                [
                    len(rows) > 1 and c.value is not None and c.value == top
                    for c, top in zip(row, best, strict=True)
                ],
                None if e.value is None else strip(scale, e.value, e.low, e.high),
                f"{found.n:,}",
                f"{result.unscored:,}" if result.unscored else "",
            )
        )
    return CorrelationTable(shown_rows, strip_axis(scale) if ends else None)


def annotators(found: Study) -> str:
    return "" if found.humans is None else annotator_facts(found.humans) + "."


def scatters(findings: Findings, names: Sequence[str]) -> list[Figure]:
    """Metric against people, as RUBER's Figures 4 and 5; jittered, or dots would hide dots."""
    joined = findings.agreement.joined
    systems = findings.material.systems
    owner = _owners(findings)
    chance = np.random.default_rng(findings.settings.seed)
    figures = []
    most = min(MOST_DOTS // max(1, len(names)), MOST_DOTS_A_PLOT)
    for name in names:
        scores = joined.item_scores[name]
        known = np.flatnonzero(~np.isnan(scores + joined.human))
        if not known.size:
            continue
        drawn = np.sort(chance.permutation(known)[:most])
        human = joined.human[drawn]
        jittered = human + chance.normal(0, _noise(human), len(human))
        value = _correlation(findings.agreement.items, name)
        frame = Frame(
            Scale.over(jittered.tolist(), 5),
            Scale.over(scores[drawn].tolist()),
            "people",
            "",
            f"Scatter plot of {name} against the average rating by people, {len(drawn):,} replies."
            f" Spearman correlation {value}.",
        )
        caption = f"Spearman {value}"
        caption += f"; {len(drawn):,} of {known.size:,} replies" if len(drawn) < known.size else ""
        figures.append(
            Figure(scatter(frame, jittered, scores[drawn], owner[drawn], systems), name, caption)
        )
    return figures


def _owners(findings: Findings) -> NDArray[np.int64]:
    """[items that agreement is computed over] the number of each one's system."""
    numbers = findings.material.numbers
    return np.array([numbers[item.system] for item in findings.agreement.joined.items], np.int64)


def _noise(ratings: Floats) -> float:
    steps = np.diff(np.unique(ratings))
    if not steps.size:
        return 0.0
    return float(np.clip(JITTER * steps.min() / np.ptp(ratings), LEAST, MOST) * np.ptp(ratings))


def _correlation(found: Study | None, name: str) -> str:
    results = found.results if found else []
    result = next((r for r in results if r.metric == name), None)
    if result is None:
        return "–"
    e = result.correlations.spearman
    return f"{shown(e.value)}{marks(e.p)} {interval(e.low, e.high, 2)}".strip()


@dataclass(frozen=True)
class SystemTable:
    """What system-level plots show, in numbers."""

    columns: list[str]
    rows: list[list[str]]


def system_plots(findings: Findings, names: Sequence[str]) -> tuple[list[Figure], SystemTable]:
    """Each system's average score against its average rating."""
    joined = findings.agreement.joined
    systems = findings.material.systems
    owner = _owners(findings)
    figures: list[Figure] = []
    columns: list[dict[int, tuple[float, float]]] = []
    for name in names:
        scores = joined.item_scores[name]
        known = ~np.isnan(scores + joined.human)
        means = {
            number: (float(joined.human[own].mean()), float(scores[own].mean()))
            for number in range(len(systems))
            if (own := known & (owner == number)).any()
        }
        columns.append(means)
        if len(means) < 2:
            continue
        value = _correlation(findings.agreement.systems, name)
        told = "" if value == "–" else f" Spearman correlation {value}."
        frame = Frame(
            _roomy([x for x, _ in means.values()]),
            _roomy([y for _, y in means.values()]),
            "people",
            "",
            f"Average {name} against the average rating of {len(means)} systems.{told}",
        )
        few = len(means) <= MOST_LABELLED
        labels = [_short(systems[n]) if few else "" for n in means]
        svg = labelled(frame, list(means.values()), list(means), labels)
        figures.append(Figure(svg, name, f"Spearman {value}" if told else ""))
    rows = [
        [
            system,
            shown(next((c[number][0] for c in columns if number in c), None)),
            *(shown(c[number][1]) if number in c else "–" for c in columns),
        ]
        for number, system in enumerate(systems)
    ]
    return figures, SystemTable(["system", "people", *names], rows)


def _roomy(values: Sequence[float]) -> Scale:
    """Room for names beside the marks."""
    return Scale.over(values, spare=0.12)


def _short(name: str) -> str:
    return name if len(name) <= 18 else f"{name[:17]}…"


def curve_plots(curves: Mapping[str, Sequence[Point]]) -> list[Figure]:
    """Agreement over the number of references, all metrics on one scale."""
    points = [point for some in curves.values() for point in some]
    ends = [v for p in points for side in (p.low, p.high, p.mean) for v in side.values()]
    if not ends:
        return []
    known = {name: some for name, some in curves.items() if any(p.mean for p in some)}
    y = Scale.over([0.0, *ends])
    figures = []
    for name, some in list(known.items())[:MOST_PLOTS]:
        lines = []
        for kind, (statistic, _) in enumerate(STATISTICS):
            has = [p for p in some if all(statistic in s for s in (p.mean, p.low, p.high))]
            x = [float(p.references) for p in has]
            of = [[getattr(p, side)[statistic] for p in has] for side in ("mean", "low", "high")]
            if has:
                lines.append(Line(x, of[0], of[1], of[2], kind))
        told = ", ".join(f"{p.references}: {shown(p.mean.get('spearman'))}" for p in some)
        frame = Frame(
            _counts([p.references for p in some]),
            y,
            "references",
            "correlation",
            f"{name}: Spearman correlation with people by number of references: {told}.",
        )
        figures.append(Figure(curve(frame, lines), name))
    return figures


def _counts(numbers: Sequence[int]) -> Scale:
    """Whole numbers, from the first to the last."""
    low, high = min(numbers), max(numbers)
    if low == high:
        return Scale(low - 1.0, high + 1.0, (float(low),), 0)
    step = max(1, -(-(high - low) // 6))
    ticks = tuple(float(n) for n in range(low, high + 1, step))
    return Scale(float(low), float(high), ticks, 0)


def curve_rows(curves: Mapping[str, Sequence[Point]]) -> list[list[str]]:
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
