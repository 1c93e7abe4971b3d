"""The tables of systems of a report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from rejoinder.meta_evaluation.ranking import PEOPLE, RankedSystem, SystemPair
from rejoinder.reporting.page.analysis import Analysis, SystemOrder
from rejoinder.reporting.plots.scales import Scale, shown
from rejoinder.reporting.plots.strips import strip, strip_axis
from rejoinder.reporting.plots.svg import key
from rejoinder.reporting.tables import MAX_PAIRS, has_own_contexts, p_value, ranking_notes

MAX_TABLES = 24
"""Metrics with a table of systems of their own."""
MAX_ORDERS = 60
"""Metrics in the table of orders."""
MAX_SYSTEMS = 40
"""Rows of a table of systems; ``compare --json`` lists all."""


@dataclass(frozen=True)
class RankingRow:
    """One system in a table of systems."""

    system: str
    key: Markup
    group: str
    value: str
    interval: str
    strip: Markup


@dataclass(frozen=True)
class RankingTable:
    """The systems by one metric or by people."""

    by: str
    title: str
    rows: list[RankingRow]
    axis: Markup | None
    grouped: bool
    notes: list[str]
    pairs: list[list[str]]
    own_contexts: bool
    """Whether pairs have a column with their number of contexts."""
    pairs_title: str
    more_pairs: int


def interval(low: float | None, high: float | None, digits: int = 3) -> str:
    """Return ``[.33, .48]`` without a line break inside."""
    if low is None or high is None:
        return ""
    return f"[{shown(low, digits)},\N{NO-BREAK SPACE}{shown(high, digits)}]"


def title(order: SystemOrder) -> str:
    """Return the caption of a table of systems."""
    if order.name == PEOPLE:
        return "By people: average rating"
    return f"By {order.name}" + ("" if order.higher_is_better else ", lower is better")


def ranking_table(
    order: SystemOrder, numbers: Mapping[str, int], *, large: bool = False
) -> RankingTable:
    """Return a table whose rows share the axis of a plot; ``numbers`` decide the colours."""
    some = order.systems[:MAX_SYSTEMS]
    ends = [end for row in some for end in (row.low, row.high, row.value)]
    scale = Scale.over(ends, 7 if large else 3)
    rows = [
        RankingRow(
            row.system,
            key(numbers[row.system]),
            row.group,
            shown(row.value),
            interval(*_ends(row)),
            strip(scale, row.value, *_ends(row), numbers[row.system]),
        )
        for row in some
    ]
    pairs = order.ranking.pairs if order.ranking else []
    neighbours = order.ranking is not None and order.ranking.neighbours_only
    own_contexts = order.ranking is not None and has_own_contexts(order.ranking)
    return RankingTable(
        order.name,
        title(order),
        rows,
        strip_axis(scale) if rows else None,
        order.ranking is not None and len(order.systems) > 1 and not neighbours,
        _notes(order, len(order.systems) - len(some)),
        [_pair(pair, own_contexts) for pair in pairs[:MAX_PAIRS]],
        own_contexts,
        "Tests of neighbours in the ranking" if neighbours else "Tests of all pairs of systems",
        max(0, len(pairs) - MAX_PAIRS),
    )


def _ends(row: RankedSystem) -> tuple[float | None, float | None]:
    """Return the interval, if there is one."""
    return (None, None) if math.isnan(row.low) else (row.low, row.high)


def _notes(order: SystemOrder, more: int) -> list[str]:
    notes = []
    if order.why_not is not None:
        notes.append(
            f"The systems were not tested against each other: {order.why_not}. Each interval is"
            " that of one system alone."
        )
    elif order.ranking is not None:
        contexts = f"{order.ranking.contexts:,} contexts that all systems answered"
        notes.append(f"Averages over {contexts}.")
        notes += ranking_notes(order.ranking)
    if order.ranking is None and order.unranked and order.systems:
        which = "1 system has" if order.unranked == 1 else f"{order.unranked:,} systems have"
        notes.append(f"{which} no scored reply: see Unscored.")
    if more > 0:
        notes.append(f"{more:,} more systems are not listed.")
    return notes


def _pair(pair: SystemPair, own_contexts: bool) -> list[str]:
    return [
        pair.better,
        pair.worse,
        *([f"{pair.contexts:,}"] if own_contexts else []),
        f"{shown(pair.difference)} {interval(pair.low, pair.high)}",
        p_value(pair.p_bootstrap),
        p_value(pair.p_randomisation),
        p_value(pair.p_adjusted),
    ]


@dataclass(frozen=True)
class Place:
    """A system in the order of a metric."""

    system: str
    key: Markup
    group: str


def orders(analysis: Analysis) -> list[tuple[str, list[Place]]]:
    """Return each metric's order of systems, best first, after that of people."""
    numbers = analysis.data.numbers
    every = ([analysis.people] if analysis.people else []) + analysis.orders[:MAX_ORDERS]
    return [
        (
            order.name,
            [
                Place(row.system, key(numbers[row.system]), row.group)
                for row in order.systems[:MAX_SYSTEMS]
            ],
        )
        for order in every
        if order.systems
    ]
