"""From arrays to the lines of a scores file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

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
        named = result.metric.ingredients(result.rows) if parts else {}
        columns.append((request.label, signature, result.values.tolist(), result.reasons, named))
    return [
        Score(
            id=item.id,
            metric=label,
            value=values[i] if reasons[i] is None else None,
            signature=signature,
            parts={k: float(v[i]) for k, v in named.items()}
            if named and reasons[i] is None
            else None,
            unscored=None if reasons[i] is None else str(reasons[i]),
        )
        for i, item in enumerate(items)
        for label, signature, values, reasons, named in columns
    ]


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
