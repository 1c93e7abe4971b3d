"""The tables of ``rejoinder pairs``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.table import Table

from rejoinder.items import Item
from rejoinder.pairwise.agreement import Point
from rejoinder.pairwise.fit import Fit
from rejoinder.reporting.chart import Chart, Line
from rejoinder.reporting.tables import number, plain_table

MOST = 30
"""How many systems are printed."""


def systems_table(candidates: Sequence[Item], found: Fit) -> Table:
    """Average winning rate of each system's candidates."""
    table = plain_table(
        "system",
        "candidates",
        "winning rate",
        "standard error",
        "votes each",
        right=[1, 2, 3, 4],
        title="Winning rates (standard error: of one candidate, on average)",
    )
    numbers: dict[str, list[int]] = {}
    for place, item in enumerate(candidates):
        if found.part[place] >= 0:
            numbers.setdefault(item.system, []).append(place)
    means = {system: float(found.rate[own].mean()) for system, own in numbers.items()}
    for system in sorted(means, key=lambda name: -means[name])[:MOST]:
        own = np.array(numbers[system])
        table.add_row(
            system,
            f"{own.size:,}",
            number(means[system], 3),
            number(float(found.error[own].mean()), 3),
            f"{found.votes[own].mean():.1f}",
        )
    return table


def curve_table(curve: Sequence[Point]) -> Table:
    """Figure 2 of the paper, as numbers."""
    table = plain_table(
        "share",
        "pairs",
        "in annotator",
        "±",
        "between annotators",
        "±",
        right=range(6),
        title="Correlation of winning rates with those from all answers",
    )
    for point in curve:
        table.add_row(
            f"{point.share:.0%}",
            f"{point.pairs:,.0f}",
            number(point.inside, 3),
            number(point.inside_spread, 3),
            number(point.between, 3),
            number(point.between_spread, 3),
        )
    return table


def curve_chart(curve: Sequence[Point]) -> Chart:
    """The same as a picture."""
    shares = [point.share for point in curve]

    def line(label: str, mean: Sequence[float | None], spread: Sequence[float | None]) -> Line:
        ends = [
            (None, None) if m is None or s is None else (m - s, m + s)
            for m, s in zip(mean, spread, strict=True)
        ]
        return Line(label, shares, mean, [low for low, _ in ends], [high for _, high in ends])

    inside = line("in annotator", [p.inside for p in curve], [p.inside_spread for p in curve])
    between = line(
        "between annotators", [p.between for p in curve], [p.between_spread for p in curve]
    )
    return Chart(
        "Winning rates from a share of the answers",
        "share of each annotator's answers",
        "Pearson correlation with those from all",
        [inside, between],
        "one standard deviation over draws, either way",
        percent=True,
    )
