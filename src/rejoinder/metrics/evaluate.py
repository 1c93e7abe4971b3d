"""The only scoring loop: items stream through in batches, all metrics in one pass.

Item metrics see a batch at a time and keep nothing, so a file of any length passes through
the same memory. Set metrics need all replies of a system together: :func:`judge_sets`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rejoinder.errors import DataError
from rejoinder.items import Item
from rejoinder.metrics.base import (
    NO_REFERENCES,
    ONLY_BAD_REFERENCES,
    ItemMetric,
    Reasons,
    SetMetric,
)
from rejoinder.metrics.batch import Batch, Floats
from rejoinder.text.tokens import Unsplittable

BATCH = 8192
MOST_LETTERS = 2**23
"""A batch ends with the item that goes beyond it."""


@dataclass(frozen=True)
class Scored:
    """What one item metric says of one batch."""

    metric: ItemMetric
    values: Floats
    """[n] the score of each item; NaN where unscored."""
    rows: Floats
    """[n, d] the statistics of each item; zero where unscored, so that they add up. Where not a
    single item of the batch could be scored, d is 0."""
    reasons: Reasons

    @property
    def scored(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.array([reason is None for reason in self.reasons], dtype=bool)


def evaluate(
    items: Iterable[Item],
    metrics: Sequence[ItemMetric],
    *,
    batch_size: int = BATCH,
    strict: bool = True,
) -> Iterator[tuple[list[Item], list[Scored]]]:
    """Score items as they come: for each batch its items, and a result for each metric.

    A metric whose tokenizer could not read a single item was given the wrong one: an error, if
    ``strict``.
    """
    hopeless: dict[int, str | None] = dict.fromkeys(range(len(metrics)))
    letters = min((m.most_letters for m in metrics if m.most_letters is not None), default=None)
    for chunk in _chunks(items, batch_size, letters):
        batch = Batch.of(chunk)
        results = [score_batch(metric, batch) for metric in metrics]
        yield chunk, results
        for which in list(hopeless):
            if results[which].scored.any():
                del hopeless[which]
            else:
                unreadable = (r for r in results[which].reasons if isinstance(r, Unsplittable))
                hopeless[which] = hopeless[which] or next(unreadable, None)
    for which, reason in hopeless.items():
        if strict and reason is not None:
            raise DataError(f"{metrics[which]}: no item could be scored: {reason}")


def _chunks(items: Iterable[Item], size: int, most_letters: int | None) -> Iterator[list[Item]]:
    """Lists of items, shorter ones where replies are long: a kernel can't be interrupted.

    ``most_letters`` is what a slow metric asks for, and counts references too.
    """
    chunk: list[Item] = []
    letters = 0
    for item in items:
        chunk.append(item)
        letters += len(item.response)
        if most_letters is not None:
            letters += sum(len(reference.text) for reference in item.references)
        if len(chunk) == size or letters > (most_letters or MOST_LETTERS):
            yield chunk
            chunk, letters = [], 0
    if chunk:
        yield chunk


def score_batch(metric: ItemMetric, batch: Batch) -> Scored:
    """What a metric says of a batch; items that it can't score get a reason and no value."""
    batch = batch.present()
    had_references = batch.counts > 0
    if "weights" not in metric.needs:
        batch = batch.positive()
    reasons = metric.reasons(batch)
    reasons[had_references & (reasons == NO_REFERENCES)] = ONLY_BAD_REFERENCES
    keep = np.flatnonzero([reason is None for reason in reasons])
    whole = len(keep) == len(batch)
    some = batch if whole else batch.take(keep)
    rows = metric.rows(some) if len(keep) else np.zeros((0, 0))
    values = metric.values(rows) if len(keep) else np.zeros(0)
    if not np.isfinite(values).all():
        wrong = batch.items[keep[np.argmin(np.isfinite(values))]].id
        raise FloatingPointError(f"{metric} gave the item '{wrong}' a score that is no number")
    if whole:
        return Scored(metric, values, rows, reasons)
    all_values = np.full(len(batch), np.nan)
    all_values[keep] = values
    all_rows = np.zeros((len(batch), rows.shape[1]))
    all_rows[keep] = rows
    return Scored(metric, all_values, all_rows, reasons)


@dataclass(frozen=True)
class Judged:
    """What one set metric says of one system."""

    metric: SetMetric
    system: str
    value: float | None
    reason: str | None
    contexts: dict[str, float | str]
    """For each context its value, or the reason why it has none."""


def judge_sets(items: Sequence[Item], metrics: Sequence[SetMetric]) -> list[Judged]:
    """Every set metric on every system, in the order in which systems appear."""
    by_system: dict[str, dict[str, list[int]]] = {}
    for number, item in enumerate(items):
        by_system.setdefault(item.system, {}).setdefault(item.group, []).append(number)
    whole = Batch.of(items).present().positive()
    return [
        _judge_system(metric, system, groups, whole)
        for metric in metrics
        for system, groups in by_system.items()
    ]


def _judge_system(
    metric: SetMetric, system: str, groups: dict[str, list[int]], whole: Batch
) -> Judged:
    contexts: dict[str, float | str] = {}
    for context, numbers in groups.items():
        batch = whole.take(np.array(numbers, np.int64))
        reason = metric.reason(batch)
        contexts[context] = metric.measure(batch) if reason is None else reason
    values = [value for value in contexts.values() if not isinstance(value, str)]
    if metric.pooled:
        everything = whole.take(np.array([n for group in groups.values() for n in group], np.int64))
        reason = metric.reason(everything)
        value = metric.measure(everything) if reason is None else None
        return Judged(metric, system, value, reason, contexts)
    if not values:
        reason = next((v for v in contexts.values() if isinstance(v, str)), "no replies")
        return Judged(metric, system, None, reason, contexts)
    return Judged(metric, system, float(np.mean(values)), None, contexts)
