"""Tables and chart of a plan."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from rejoinder.estimation.looks import Look
from rejoinder.estimation.planning import Question
from rejoinder.estimation.sample_size import Needed, SizePoint, Spread
from rejoinder.reporting.plots.line_chart import Line, LineChart
from rejoinder.reporting.tables import interval_of, number, p_value, plain_table

MAX_LOOKS = 30
"""Means, or pairs, that are printed."""
MAX_ROWS = 12
"""Points of the curve that are printed."""


def curve_table(curve: Sequence[SizePoint]) -> Table:
    """Return the expected width of intervals, and the power, over the number of ratings."""
    with_power = any(point.power is not None for point in curve)
    names = ["ratings", "width", "width at any time", *(["power"] if with_power else [])]
    table = plain_table(
        *names,
        right=range(4),
        title="Expected width of the interval, by the number of ratings in all",
    )
    step = max(1, -(-len(curve) // MAX_ROWS))
    for point in curve[(len(curve) - 1) % step :: step]:
        cells = [f"{point.ratings:,}", number(point.width, 3), number(point.anytime_width, 3)]
        table.add_row(*cells, *([number(point.power, 3)] if with_power else []))
    return table


def looks_table(looks: Sequence[Look]) -> Table:
    """Return what the ratings so far decide."""
    table = plain_table(
        "",
        "so far",
        "95 % if looked at once",
        "at any time",
        "p",
        right=[1, 4],
        title="Ratings so far (intervals at any time are valid however often you look)",
    )
    for look in looks[:MAX_LOOKS]:
        name = look.a if look.b is None else f"{look.a} - {look.b}"
        table.add_row(
            name + (" *" if look.decided else ""),
            number(look.estimate, 3),
            interval_of(look.ci, 3),
            interval_of(look.anytime_ci, 3),
            "" if look.b is None else p_value(look.anytime_p),
        )
    return table


def needed_line(needed: Needed, what: str) -> str:
    """Return how many ratings suffice, as a sentence."""
    if needed.ratings is None:
        return f"{what}: not even ratings of all replies suffice"
    more = f"{needed.more:,} more" if needed.more else "none more"
    return f"{what}: {needed.ratings:,} ratings in all, {more}"


def spread_line(spread: Spread, question: Question) -> str:
    """Return what the numbers rest on."""
    of = "ratings" if question == "mean" else "differences within a context"
    units = "replies" if question == "mean" else "contexts"
    source = f"from {spread.known_from:,} rated {units}" if spread.known_from else "assumed"
    if spread.within_dialogues:
        source += f"; correlation within dialogues {number(spread.within_dialogues, 2)}"
    return (
        f"standard deviation of {of} {number(spread.sd, 2)}, correlation with the scores"
        f" {number(spread.correlation, 2)} ({source})"
    )


def curve_chart(curve: Sequence[SizePoint], question: Question, width: float | None) -> LineChart:
    """Return the expected width of intervals over the number of ratings as a chart."""
    shown = curve[1:] if len(curve) > 2 else curve  # the first few ratings dwarf all others
    x = [point.ratings for point in shown]
    lines = [
        Line("looked at once", x, [point.width for point in shown]),
        Line("looked at all the time", x, [point.anytime_width for point in shown]),
    ]
    if width is not None:
        lines.append(Line("wanted", x, [width] * len(x)))
    what = "mean" if question == "mean" else "difference"
    return LineChart(
        f"Width of the interval of a {what} by number of ratings", "ratings", "width", lines
    )
