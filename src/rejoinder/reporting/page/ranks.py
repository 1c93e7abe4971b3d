"""The systems' places as the page shows them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from rejoinder.meta_evaluation.ranking import Pair, Ranked
from rejoinder.reporting.page.findings import Findings, Placed
from rejoinder.reporting.plots.scales import Scale, shown
from rejoinder.reporting.plots.strips import strip, strip_axis
from rejoinder.reporting.plots.svg import key
from rejoinder.reporting.tables import MOST_PAIRS, p_value

MOST_TABLES = 24
"""Metrics that have a table of systems of their own."""
MOST_ORDERS = 60
MOST_SYSTEMS = 40
"""Rows of a table of systems; the order of all stands in the JSON of ``compare``."""


@dataclass(frozen=True)
class Row:
    system: str
    key: Markup
    group: str
    value: str
    interval: str
    strip: Markup


@dataclass(frozen=True)
class Ranks:
    """One metric's table of systems."""

    metric: str
    rows: list[Row]
    axis: Markup | None
    grouped: bool
    lower_is_better: bool
    notes: list[str]
    pairs: list[list[str]]
    more_pairs: int


def interval(low: float | None, high: float | None, digits: int = 3) -> str:
    """``[.33, .48]``, which no line break divides."""
    if low is None or high is None:
        return ""
    return f"[{shown(low, digits)},\N{NO-BREAK SPACE}{shown(high, digits)}]"


def ranks(placed: Placed, numbers: Mapping[str, int], *, large: bool = False) -> Ranks:
    """A table with a plot in it, which all rows share the axis of; ``numbers`` are the systems'."""
    some = placed.systems[:MOST_SYSTEMS]
    ends = [end for row in some for end in (row.low, row.high, row.value)]
    scale = Scale.over(ends, 7 if large else 3)
    rows = [
        Row(
            row.system,
            key(numbers[row.system]),
            row.group,
            shown(row.value),
            interval(*_ends(row)),
            strip(scale, row.value, *_ends(row), numbers[row.system]),
        )
        for row in some
    ]
    pairs = placed.order.pairs if placed.order else []
    return Ranks(
        placed.name,
        rows,
        strip_axis(scale) if rows else None,
        placed.order is not None and len(placed.systems) > 1,
        not placed.higher_is_better,
        _notes(placed, len(placed.systems) - len(some)),
        [_pair(pair) for pair in pairs[:MOST_PAIRS]],
        max(0, len(pairs) - MOST_PAIRS),
    )


def _ends(row: Ranked) -> tuple[float | None, float | None]:
    """The interval, if there is one."""
    return (None, None) if math.isnan(row.low) else (row.low, row.high)


def _notes(placed: Placed, more: int) -> list[str]:
    notes = []
    if placed.why_not is not None:
        notes.append(
            f"Not tested against each other: {placed.why_not}. Each interval stands alone."
        )
    elif placed.order is not None:
        notes.append(f"Averages over {placed.order.contexts:,} contexts that all systems answered.")
        if left_out := placed.order.left_out:
            which = "1 context is" if left_out == 1 else f"{left_out:,} contexts are"
            notes.append(f"{which} left out, because not every system has a score there.")
    if placed.unplaced and placed.systems:
        which = "1 system" if placed.unplaced == 1 else f"{placed.unplaced:,} systems"
        notes.append(f"Of {which} no reply could be scored: see Missing.")
    if more > 0:
        notes.append(f"{more:,} more systems are not listed.")
    return notes


def _pair(pair: Pair) -> list[str]:
    return [
        pair.better,
        pair.worse,
        f"{shown(pair.difference)} {interval(pair.low, pair.high)}",
        p_value(pair.p_bootstrap),
        p_value(pair.p_randomisation),
        p_value(pair.p_adjusted),
    ]


@dataclass(frozen=True)
class Place:
    system: str
    key: Markup
    group: str


def orders(findings: Findings) -> list[tuple[str, list[Place]]]:
    """Every metric's order of systems, best first; people's before all."""
    numbers = findings.material.numbers
    every = ([findings.people] if findings.people else []) + findings.placed[:MOST_ORDERS]
    return [
        (
            placed.name,
            [
                Place(row.system, key(numbers[row.system]), row.group)
                for row in placed.systems[:MOST_SYSTEMS]
            ],
        )
        for placed in every
        if placed.systems
    ]
