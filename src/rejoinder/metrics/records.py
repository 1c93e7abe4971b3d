"""From arrays to the lines of a scores file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from rejoinder.items import Item, Score
from rejoinder.metrics.evaluate import Judged, Scored
from rejoinder.metrics.request import Request


def item_scores(
    asked: Sequence[Request], items: Sequence[Item], results: Sequence[Scored], *, parts: bool
) -> list[Score]:
    """Item by item, the metrics in the order in which they were asked for."""
    columns = []
    for request, result in zip(asked, results, strict=True):
        signature = request.metric.signature()
        named = _parts(result) if parts else [None] * len(items)
        covered = _coverage(result)
        values = result.values.tolist()
        columns.append((request.label, signature, values, result.reasons, named, covered))
    return [
        Score(
            id=item.id,
            metric=label,
            value=values[i] if reasons[i] is None else None,
            signature=signature,
            parts=named[i],
            unscored=None if reasons[i] is None else str(reasons[i]),
            coverage=covered[i],
        )
        for i, item in enumerate(items)
        for label, signature, values, reasons, named, covered in columns
    ]


def _coverage(result: Scored) -> list[dict[str, float] | None]:
    """How well an evaluator that was asked knows each item's context."""
    found = result.coverage
    count = len(result.values)
    return [None] * count if found is None else [found.record(i) for i in range(count)]


def _parts(result: Scored) -> list[dict[str, float] | None]:
    """The ingredients of each score; what is unscored has none."""
    found: list[dict[str, float] | None] = [None] * len(result.values)
    scored = np.flatnonzero(result.scored)
    named = result.metric.ingredients(result.rows[scored]) if scored.size else {}
    for row, place in enumerate(scored.tolist() if named else []):
        found[place] = {name: float(values[row]) for name, values in named.items()}
    return found


def set_scores(asked: Sequence[Request], judged: Sequence[Judged]) -> list[Score]:
    """Each context of each system, then the system itself."""
    labels = {request.metric: request.label for request in asked}
    lines = []
    for row in judged:
        label, signature = labels[row.metric], row.metric.signature()
        entries: list[tuple[Literal["context", "system"], str, float | str]]
        entries = [("context", key, value) for key, value in row.contexts.items()]
        whole = row.value if row.value is not None else row.reason or ""
        for level, key, value in [*entries, ("system", row.system, whole)]:
            reason = value if isinstance(value, str) else None
            lines.append(
                Score(
                    id=key,
                    metric=label,
                    value=None if isinstance(value, str) else value,
                    signature=signature,
                    unscored=reason,
                    level=level,
                    system=row.system,
                )
            )
    return lines
