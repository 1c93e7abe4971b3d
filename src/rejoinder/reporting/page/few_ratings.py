"""Few ratings in the report: people alone, the metric alone and both, and what to rate next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from rejoinder.estimation.estimates import Estimates, OneEstimate
from rejoinder.items import Item
from rejoinder.reporting.estimate_tables import about, worth
from rejoinder.reporting.page.agreement import Figure
from rejoinder.reporting.page.few_estimates import FewRatings
from rejoinder.reporting.page.item_browser import shortened
from rejoinder.reporting.page.rankings import MAX_SYSTEMS, interval
from rejoinder.reporting.plots.charts import line_plot
from rejoinder.reporting.plots.frame import Frame
from rejoinder.reporting.plots.lines import Line
from rejoinder.reporting.plots.scales import Scale, shown
from rejoinder.reporting.plots.strips import strip, strip_axis
from rejoinder.reporting.plots.svg import key
from rejoinder.reporting.tables import p_value

MAX_PAIRS = 20
MAX_TEXT = 90
KINDS = ("both", "people alone", "metric alone")


@dataclass(frozen=True)
class EstimateRow:
    """A mean, of one kind."""

    system: str
    key: Markup
    group: str
    kind: str
    first: bool
    rows: int
    value: str
    interval: str
    strip: Markup


@dataclass(frozen=True)
class FewRatingsSection:
    """The variables of the template."""

    answer: str
    about: str
    metric: str
    rows: list[EstimateRow]
    axis: Markup | None
    pairs: list[list[str]]
    more_systems: int
    figures: list[Figure]
    curve: list[list[str]]
    needed: str
    next: list[tuple[str, str, str]]
    warnings: list[str]


def few_ratings_section(
    found: FewRatings | None, items: Sequence[Item], numbers: dict[str, int], metric: str
) -> FewRatingsSection | None:
    """Return the variables of the template; None if there are no few ratings."""
    if found is None:
        return None
    following = [
        (items[n].id, items[n].system, shortened(items[n].response, MAX_TEXT)) for n in found.next
    ]
    if found.estimates is None:
        why = f"Means of people can’t be estimated: {found.missing}."
        return FewRatingsSection(why, "", metric, [], None, [], 0, [], [], "", following, [])
    estimates = found.estimates
    rows, axis = _rows(estimates, numbers)
    pairs = [
        [
            pair.a,
            pair.b,
            _cell(OneEstimate(pair.difference, pair.ci)),
            _cell(pair.people_only),
            p_value(pair.p_adjusted),
        ]
        for pair in estimates.pairs[:MAX_PAIRS]
    ]
    worded = worth(estimates.ratings, estimates.effective_ratings)
    return FewRatingsSection(
        f"{worded[0].upper()}{worded[1:]}.",
        about(estimates),
        metric,
        rows,
        axis,
        pairs,
        max(0, len(estimates.systems) - MAX_SYSTEMS),
        *_curve(found),
        _needed(found),
        following,
        [*estimates.warnings, *estimates.notes],
    )


def _rows(estimates: Estimates, numbers: dict[str, int]) -> tuple[list[EstimateRow], Markup | None]:
    some = estimates.systems[:MAX_SYSTEMS]
    several = [
        (each, [OneEstimate(each.mean, each.ci), each.people_only, each.metric_only])
        for each in some
    ]
    ends = [
        end
        for _, kinds in several
        for kind in kinds
        for end in (kind.mean, *(kind.ci or ()))
        if end is not None
    ]
    if not ends:
        return [], None
    scale = Scale.over(ends, 7)
    rows = []
    for each, kinds in several:
        known = [
            (name, kind.mean, kind.ci)
            for name, kind in zip(KINDS, kinds, strict=True)
            if kind.mean is not None
        ]
        for place, (name, mean, ci) in enumerate(known):
            low, high = ci or (None, None)
            number = numbers[each.system]
            rows.append(
                EstimateRow(
                    each.system,
                    key(number),
                    each.group,
                    name,
                    place == 0,
                    len(known),
                    shown(mean),
                    interval(low, high),
                    strip(scale, mean, low, high, number if place == 0 else -1),
                )
            )
    return rows, strip_axis(scale)


def _cell(value: OneEstimate) -> str:
    low, high = value.ci or (None, None)
    return f"{shown(value.mean)} {interval(low, high)}".rstrip()


def _curve(found: FewRatings) -> tuple[list[Figure], list[list[str]]]:
    """Return the width of the interval by number of ratings, with the metric and without."""
    study = found.study
    if study is None or not study.spread.known_from or study.units < 3:
        return [], []
    alone = replace(study, spread=replace(study.spread, correlation=0.0))
    both, plain = study.curve(found.rated_units, None)[1:], alone.curve(found.rated_units, None)[1:]
    x = [float(point.ratings) for point in both]
    lines = [
        Line("people and metric", x, [point.width for point in both]),
        Line("people alone", x, [point.width for point in plain]),
    ]
    widths = [point.width for point in (*both, *plain)]
    what = "mean" if found.question == "mean" else "difference of two systems"
    values = ", ".join(f"{p.ratings:,}: {shown(p.width)}" for p in both)
    frame = Frame(
        Scale.over([0.0, *x], spare=0.02),
        Scale.over([0.0, *widths]),
        "ratings in all",
        "width of the interval",
        f"Width of the 95 % interval of a {what} by number of ratings: {values}.",
    )
    rows = [
        [f"{p.ratings:,}", shown(p.width), shown(q.width), shown(p.anytime_width)]
        for p, q in zip(both, plain, strict=True)
    ]
    return [Figure(line_plot(frame, lines), f"Interval of a {what}")], rows


def _needed(found: FewRatings) -> str:
    if found.halved is None:
        return ""
    if found.halved.more is None:
        return "Not even ratings of all replies would make the intervals half as wide."
    return f"{found.halved.more:,} more ratings would make the intervals half as wide as now."
