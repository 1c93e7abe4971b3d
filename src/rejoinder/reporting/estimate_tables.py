"""Tables and chart of estimates: people alone, the metric alone, and both."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from rejoinder.estimation.estimates import Estimates, OneEstimate
from rejoinder.reporting.plots.interval_chart import IntervalRow, interval_svg
from rejoinder.reporting.tables import interval, number, p_value, plain_table, printable

MAX_PAIRS = 30
"""Pairs that the table lists; --json has all."""


def systems_table(estimates: Estimates) -> Table:
    """Return the mean rating of each system, highest first."""
    table = plain_table(
        *("", "system", "mean rating", "people alone", "metric", "rated", "effective"),
        right=range(2, 7),
        title=f"Mean rating by people and metric together, {_level(estimates)}",
    )
    for each in estimates.systems:
        table.add_row(
            each.group,
            printable(each.system),
            mean_with_ends(OneEstimate(each.mean, each.ci)),
            mean_with_ends(each.people_only),
            number(each.metric_only.mean, 2),
            f"{each.ratings:,}",
            "–" if each.effective_ratings is None else f"{each.effective_ratings:,.0f}",
        )
    return table


def differences_table(estimates: Estimates) -> Table:
    """Return the differences between systems."""
    table = plain_table(
        *("system", "against", "difference", "people alone", "p", "adjusted"), right=range(2, 6)
    )
    if (more := len(estimates.pairs) - MAX_PAIRS) > 0:
        table.caption, table.caption_justify = f"… {more:,} more pairs", "left"
    for pair in estimates.pairs[:MAX_PAIRS]:
        table.add_row(
            printable(pair.a),
            printable(pair.b),
            mean_with_ends(OneEstimate(pair.difference, pair.ci)),
            mean_with_ends(pair.people_only),
            p_value(pair.p),
            p_value(pair.p_adjusted),
        )
    return table


def worth(ratings: int, effective: float | None) -> str:
    """Say how many rated replies the metric was worth.

    >>> worth(120, 190.2)
    'with the metric, your 120 rated replies are worth 190 without it'
    """
    if effective is None:
        return f"{ratings:,} rated replies: too few to tell what the metric adds to them"
    if effective < ratings * 1.02:
        return f"the metric adds nothing to your {ratings:,} rated replies"
    return f"with the metric, your {ratings:,} rated replies are worth {effective:,.0f} without it"


def about(estimates: Estimates) -> str:
    """Return one line on what was estimated, and from what."""
    people = estimates.people
    who = "unidentified people"
    if people.number is not None:
        who = "one person" if people.number == 1 else f"{people.number:,} people"
    what = "contexts like these" if estimates.target == "contexts" else "just these replies"
    return (
        f"{estimates.method}, about {what}; {people.ratings:,} ratings of {who} from"
        f" {people.low:g} to {people.high:g}"
        + (f", Krippendorff's alpha {number(people.alpha, 2)}" if people.alpha is not None else "")
    )


def estimates_svg(estimates: Estimates) -> str:
    """Return people alone, the metric alone and both as intervals side by side, as an SVG file."""
    return interval_svg(
        "Mean rating by system", f"rating, {_level(estimates)}", list(_rows(estimates))
    )


def _rows(estimates: Estimates) -> Iterator[IntervalRow]:
    for each in estimates.systems:
        kinds = [
            ("both", OneEstimate(each.mean, each.ci), each.group),
            ("people alone", each.people_only, ""),
            ("metric alone", each.metric_only, ""),
        ]
        for color, (kind, value, remark) in enumerate(kinds):
            if value.mean is not None:
                low, high = value.ci or (None, None)
                label = f"{each.system}: {kind}"
                yield IntervalRow(label, value.mean, low, high, remark, color)


def mean_with_ends(value: OneEstimate) -> str:
    """Return a mean with its interval."""
    return f"{number(value.mean, 2)} {'' if value.ci is None else interval(*value.ci, 2)}".rstrip()


def _level(estimates: Estimates) -> str:
    return f"{100 * estimates.confidence:g} % intervals"
