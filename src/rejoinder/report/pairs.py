"""The tables of ``rejoinder pairs``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from rich.table import Table

from rejoinder.items import Item
from rejoinder.pairwise.agreement import Point
from rejoinder.pairwise.annotators import Agreement, Bad
from rejoinder.pairwise.fit import Fit
from rejoinder.report.agreement import agreement_facts
from rejoinder.report.tables import number, plain_table

MOST = 30
"""How many annotators, or candidates at either end, are printed."""


def annotators_table(found: Agreement, bad: Sequence[Bad]) -> Table:
    """Who answered, those with the lowest kappa first."""
    table = plain_table(
        "annotator",
        "answers",
        "kappa",
        "distractor preferred",
        "",
        right=[1, 2, 3],
        title="Annotators",
    )
    reasons: Mapping[str, str] = {each.name: each.reason for each in bad}
    listed = sorted(
        found.annotators,
        key=lambda one: (one.name not in reasons, 2.0 if one.kappa is None else one.kappa),
    )
    for one in listed[:MOST]:
        preferred = "" if one.preferred is None else f"{number(one.preferred, 2)} of {one.planted}"
        remark = f"bad: {reasons[one.name]}" if one.name in reasons else ""
        if not remark and one.answers == 1:
            remark = "one answer only"
        table.add_row(one.name, f"{one.answers:,}", number(one.kappa, 3), preferred, remark)
    if len(listed) > MOST:
        table.add_row(f"and {len(listed) - MOST:,} more", "", "", "", "")
    return table


def agreement_line(found: Agreement, answers: int) -> str:
    """How far the annotators agree, in one line."""
    given = f"{answers:,} answers of {len(found.annotators):,} named annotators"
    return ", ".join([given, *agreement_facts(found.kappa, found.alpha, found.left_out)])


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
