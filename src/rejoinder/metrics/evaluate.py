"""The only scoring loop: items stream through in batches, all metrics in one pass.

Item metrics see a batch at a time and keep nothing, so a file of any length passes through
the same memory. Set metrics need all replies of a system together: :func:`judge_sets`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rejoinder.errors import DataError
from rejoinder.items import Item
from rejoinder.metrics.base import ItemMetric, SetMetric
from rejoinder.metrics.batch import Batch
from rejoinder.metrics.sitting import Scored, Sitting, score_batch
from rejoinder.progress import Progress
from rejoinder.text.tokens import Unsplittable

if TYPE_CHECKING:
    from rejoinder.evaluator.seen import EvaluatedSet

__all__ = ["Judged", "Scored", "evaluate", "judge_sets", "score_batch"]

BATCH = 8192
EXPANDED_BATCH = 2048
"""Where an evaluator adds references: each item may get a hundred."""
MOST_LETTERS = 2**23
"""A batch ends with the item that goes beyond it."""


def evaluate(
    items: Iterable[Item],
    metrics: Sequence[ItemMetric],
    *,
    batch_size: int = BATCH,
    strict: bool = True,
    examined: EvaluatedSet | None = None,
    on_progress: Progress | None = None,
) -> Iterator[tuple[list[Item], list[Scored]]]:
    """Score items as they come: for each batch its items, and a result for each metric.

    A metric whose tokenizer could not read a single item was given the wrong one: an error, if
    ``strict``. Evaluators must know all contexts beforehand, so as not to use what they know of
    them: ``examined``. Without it, items are kept in memory where a metric asks an evaluator, as
    they are where a metric judges by the whole set; such a metric tells ``on_progress`` how many
    items of how many are done.
    """
    if asking := any(metric.evaluators() for metric in metrics):
        batch_size = min(batch_size, EXPANDED_BATCH)
    if asking and examined is None:
        from rejoinder.evaluator.seen import EvaluatedSet

        items = list(items)
        examined = EvaluatedSet.of(items)
    whole = any(metric.whole_set for metric in metrics)
    hopeless: dict[int, str | None] = dict.fromkeys(range(len(metrics)))
    limits = [m.most_letters for m in metrics if m.most_letters is not None]
    # a search of the pool is worth its while for many items only
    letters = None if asking else min(limits, default=None)
    for chunk in _whole(items) if whole else _chunks(items, batch_size, letters):
        sitting = Sitting(Batch.of(chunk), examined, on_progress if whole else None)
        results = [sitting.score(metric) for metric in metrics]
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


def _whole(items: Iterable[Item]) -> Iterator[list[Item]]:
    if everything := list(items):
        yield everything


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
