"""From arrays of scores to the lines of a scores file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np

from rejoinder.item_table import ItemTable
from rejoinder.items import Score
from rejoinder.metrics.evaluate import BatchScores, SystemScore
from rejoinder.metrics.metric import Metric


def item_scores(
    labels: Mapping[Metric, str],
    items: ItemTable,
    results: Sequence[BatchScores],
    *,
    parts: bool,
) -> list[Score]:
    """Return the scores of a batch, item by item, the metrics in the order of ``results``."""
    columns = []
    for result in results:
        signature = result.metric.signature()
        named = _parts(result) if parts else [None] * len(items)
        covered = coverage_records(result)
        values = result.values.tolist()
        label = labels[result.metric]
        ends = interval_records(result)
        judged = result.judging or [None] * len(items)
        columns.append((label, signature, values, result.reasons, named, covered, ends, judged))
    return [
        Score(
            id=id,
            metric=label,
            value=values[i] if reasons[i] is None else None,
            signature=signature,
            parts=named[i],
            unscored=None if reasons[i] is None else str(reasons[i]),
            coverage=covered[i],
            interval=ends[i],
            judging=judged[i],
        )
        for i, id in enumerate(items.ids)
        for label, signature, values, reasons, named, covered, ends, judged in columns
    ]


def item_score_lines(
    labels: Mapping[Metric, str],
    items: ItemTable,
    results: Sequence[BatchScores],
    *,
    parts: bool,
) -> bytes:
    """Return the lines of a scores file with the scores of a batch, as :func:`item_scores`.

    Most scores are no more than an id and a number: these lines are put together from bytes that
    are the same for all, and no record is made.
    """
    encoder = msgspec.json.Encoder()
    if parts or not all(map(_is_plain, results)):
        return encoder.encode_lines(item_scores(labels, items, results, parts=parts))
    ids = encoder.encode_lines(items.ids).split(b"\n")
    columns = []
    for result in results:
        template = encoder.encode(Score("", labels[result.metric], 0, result.metric.signature()))
        before, after = template[len(b'{"id":""') :].split(b'"value":0', 1)
        numbers = encoder.encode(result.values.tolist())[1:-1].split(b",")
        columns.append((before + b'"value":', numbers, after + b"\n"))
    if len(columns) == 1:
        ((before, numbers, after),) = columns
        return b"".join(
            [b'{"id":%b%b%b%b' % (i, before, v, after) for i, v in zip(ids, numbers, strict=False)]
        )
    return b"".join(
        [
            b'{"id":%b%b%b%b' % (ids[place], before, numbers[place], after)
            for place in range(len(items))
            for before, numbers, after in columns
        ]
    )


def _is_plain(result: BatchScores) -> bool:
    """Return whether all scores of a batch are no more than a number each."""
    if result.coverage is not None or result.judging is not None or not result.scored.all():
        return False
    return not result.values.size or result.metric.intervals(result.rows) is None


def coverage_records(result: BatchScores) -> list[dict[str, float] | None]:
    """Return how well the evaluator's logs cover the context of each item."""
    coverage = result.coverage
    count = len(result.values)
    return [None] * count if coverage is None else [coverage.record(i) for i in range(count)]


def interval_records(result: BatchScores) -> list[tuple[float, float] | None]:
    """Return the interval of each score, None where the metric knows none."""
    ends: list[tuple[float, float] | None] = [None] * len(result.values)
    scored = np.flatnonzero(result.scored)
    known = result.metric.intervals(result.rows[scored]) if scored.size else None
    if known is not None:
        for place, low, high in zip(scored.tolist(), *(e.tolist() for e in known), strict=True):
            ends[place] = low, high
    return ends


def _parts(result: BatchScores) -> list[dict[str, float] | None]:
    """Return the parts of each score, without those that an item does not have."""
    parts: list[dict[str, float] | None] = [None] * len(result.values)
    scored = np.flatnonzero(result.scored)
    named = result.metric.ingredients(result.rows[scored]) if scored.size else {}
    for row, place in enumerate(scored.tolist() if named else []):
        values = {name: float(column[row]) for name, column in named.items()}
        parts[place] = {name: value for name, value in values.items() if not math.isnan(value)}
    return parts


def set_scores(labels: Mapping[Metric, str], scores: Sequence[SystemScore]) -> list[Score]:
    """Return the score of each context of each system, then that of the system itself."""
    lines = []
    for row in scores:
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
