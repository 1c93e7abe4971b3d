"""The references of a report: counts, and histograms of retrieved ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rejoinder.items import RETRIEVED, Item
from rejoinder.reporting.page.agreement import Figure
from rejoinder.reporting.plots.charts import histogram
from rejoinder.reporting.plots.frame import Frame
from rejoinder.reporting.plots.scales import Scale, shown

BINS = 20


@dataclass(frozen=True)
class References:
    """The references in words, plots and tables."""

    counts: str
    """Their numbers in a sentence."""
    figures: list[Figure]
    tables: list[tuple[str, list[list[str]]]]
    """The bins of each histogram."""


def references(items: Sequence[Item]) -> References:
    """Count each context's references once, though several systems answered it."""
    seen: set[tuple[str, str, float | None, float | None]] = set()
    weights: list[float] = []
    scores: list[float] = []
    with_items = by_model = 0
    for item in items:
        for reference in item.references:
            key = item.group, reference.text, reference.weight, reference.score
            if key in seen:
                continue
            seen.add(key)
            by_model += reference.is_by_model
            if reference.source != RETRIEVED:
                with_items += not reference.is_by_model
                continue
            if reference.weight is not None:
                weights.append(reference.weight)
            if reference.score is not None:
                scores.append(reference.score)
    retrieved = len(seen) - with_items - by_model
    contexts = len({item.group for item in items})
    kinds = f"{with_items:,} came with the items, {retrieved:,} were retrieved"
    if by_model:
        kinds += f", {by_model:,} were written by a language model"
    elif not retrieved:
        kinds = "all came with the items, none was retrieved"
    counts = f"{len(seen):,} references of {contexts:,} contexts: {kinds}."
    if not seen:
        counts = f"The {contexts:,} contexts have no references in the items."
    figures, tables = [], []
    for values, ends, title, x_name in (
        (weights, (-1.0, 1.0), "Weights of retrieved references", "weight"),
        (scores, None, "Similarity of their contexts", "similarity"),
    ):
        if values:
            figure, rows = _figure(values, ends, title, x_name)
            figures.append(figure)
            tables.append((title, rows))
    return References(counts, figures, tables)


def _figure(
    values: Sequence[float], ends: tuple[float, float] | None, title: str, x_name: str
) -> tuple[Figure, list[list[str]]]:
    x = Scale.over(ends or [min(values), max(values)], spare=0)
    edges = np.linspace(x.low, x.high, BINS + 1)
    counts = np.histogram(values, edges)[0]
    y = Scale.over([0.0, 1.05 * float(counts.max())], spare=0)
    middle = float(np.median(values))
    label = (
        f"Histogram of the {x_name} of {len(values):,} retrieved references, from"
        f" {shown(min(values))} to {shown(max(values))}, median {shown(middle)}."
    )
    svg = histogram(Frame(x, y, x_name, "", label), edges.tolist(), counts.tolist())
    rows = [
        [f"{shown(low, 2)} to {shown(high, 2)}", f"{count:,}"]
        for low, high, count in zip(edges, edges[1:], counts.tolist(), strict=False)
    ]
    return Figure(svg, title, f"{len(values):,} references, median {shown(middle)}"), rows
