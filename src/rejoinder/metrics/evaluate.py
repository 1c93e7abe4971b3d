"""The scoring loop: items stream through in batches, all metrics in one pass.

Item metrics score one batch at a time and keep nothing, so memory does not grow with the number of
items. Set metrics need all replies of a system together: :func:`score_sets`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rejoinder.errors import DataError
from rejoinder.item_table import ItemTable, each_item, tables_of
from rejoinder.items import Item, Reference
from rejoinder.metrics.batch import Batch
from rejoinder.metrics.batch_scores import BatchScores
from rejoinder.metrics.language_check import LanguageCheck
from rejoinder.metrics.metric import ItemMetric, SetMetric
from rejoinder.metrics.scoring_context import ScoringContext, ignore, score_batch
from rejoinder.metrics.third_party import checked_measure, third_party_errors
from rejoinder.progress import Progress
from rejoinder.text.tokens import Unsplittable

if TYPE_CHECKING:
    from rejoinder.evaluator.contamination import TestSet

__all__ = ["BatchScores", "SystemScore", "evaluate", "score_batch", "score_sets"]

BATCH_SIZE = 8192
EXPANDED_BATCH_SIZE = 2048
"""Batch size with an evaluator, which may add a hundred references to each item."""
MAX_CHARACTERS = 2**23
"""A batch ends with the item that exceeds this number of characters."""


def evaluate(
    items: Iterable[Item] | Iterable[ItemTable],
    metrics: Sequence[ItemMetric],
    *,
    batch_size: int = BATCH_SIZE,
    strict: bool = True,
    test_set: TestSet | None = None,
    on_progress: Progress | None = None,
    any_language: bool = False,
    on_note: Callable[[str], None] | None = None,
    on_message: Callable[[str], None] | None = None,
    on_part: Progress | None = None,
) -> Iterator[tuple[ItemTable, list[BatchScores]]]:
    """Score items, or tables of items, as they come: yield each batch of items with the scores of
    each metric.

    ``strict``: raise DataError if a tokenizer could not split the texts of a single item; it is
    the wrong one for the language.

    ``test_set``: all contexts that are scored. Evaluators must know them beforehand, so that they
    retrieve nothing from the same contexts; without it, all items are kept in memory if a metric
    has an evaluator. They are kept as well if a metric scores the whole set at once; such a metric
    calls ``on_progress`` with the number of items done and their total.

    ``any_language``: score texts in a language that an encoder or evaluator does not know, which
    raises DataError otherwise; ``on_note`` is called with a warning.

    Metrics that ask a language model call ``on_message`` with what it will cost, and ``on_part``
    with the number of items of the batch that are done and their total.
    """
    languages = LanguageCheck(metrics, any_language, on_note)
    if has_evaluator := any(metric.evaluators() for metric in metrics):
        batch_size = min(batch_size, EXPANDED_BATCH_SIZE)
    if has_evaluator and test_set is None:
        from rejoinder.evaluator.contamination import TestSet

        items = list(each_item(items))
        test_set = TestSet.of(items)
    whole = any(metric.needs_whole_set for metric in metrics)
    unscored: dict[int, str | None] = dict.fromkeys(range(len(metrics)))
    limits = [m.max_characters for m in metrics if m.max_characters is not None]
    # searching the pool is only efficient for many items at once
    max_characters = None if has_evaluator else min(limits, default=None)
    for chunk in _one_batch(items) if whole else _batches(items, batch_size, max_characters):
        languages.check(chunk)
        context = ScoringContext(
            Batch.of(chunk),
            test_set,
            on_progress if whole else None,
            on_message or ignore,
            on_note or ignore,
            on_part,
        )
        results = [_timed(context, metric) for metric in metrics]
        yield chunk, results
        for which in list(unscored):
            if results[which].scored.any():
                del unscored[which]
            else:
                unreadable = (r for r in results[which].reasons if isinstance(r, Unsplittable))
                unscored[which] = unscored[which] or next(unreadable, None)
    for which, reason in unscored.items():
        if strict and reason is not None:
            raise DataError(f"{metrics[which]}: no item could be scored: {reason}")


def _timed(context: ScoringContext, metric: ItemMetric) -> BatchScores:
    began = time.perf_counter()
    scores = context.score(metric)
    return replace(scores, seconds=time.perf_counter() - began)


def _one_batch(items: Iterable[Item] | Iterable[ItemTable]) -> Iterator[ItemTable]:
    if everything := list(each_item(items)):
        yield ItemTable.of(everything)


def _batches(
    items: Iterable[Item] | Iterable[ItemTable], size: int, max_characters: int | None
) -> Iterator[ItemTable]:
    """Split items into batches; shorter ones if replies are long, since a kernel cannot be
    interrupted. ``max_characters``, the limit of a slow metric, counts references, too."""
    for table in tables_of(items, size):
        lengths = np.fromiter(map(len, table.responses), np.int64, len(table))
        if max_characters is not None:
            lengths += [sum(map(_length, references)) for references in table.references]
        ends = np.cumsum(lengths)
        begin = 0
        while begin < len(table):
            before = ends[begin - 1] if begin else 0
            limit = before + (max_characters or MAX_CHARACTERS)
            end = min(int(np.searchsorted(ends, limit, "right")) + 1, begin + size, len(table))
            yield table if end - begin == len(table) else table[begin:end]
            begin = end


def _length(reference: str | Reference) -> int:
    return len(reference if isinstance(reference, str) else reference.text)


@dataclass(frozen=True)
class SystemScore:
    """The value of one system by one set metric."""

    metric: SetMetric
    system: str
    value: float | None
    reason: str | None
    """Why there is no value."""
    contexts: dict[str, float | str]
    """For each context its value, or the reason why it has none."""


def score_sets(
    items: Sequence[Item],
    metrics: Sequence[SetMetric],
    *,
    any_language: bool = False,
    on_note: Callable[[str], None] | None = None,
) -> list[SystemScore]:
    """Score every system by every set metric, in the order in which systems appear."""
    LanguageCheck(metrics, any_language, on_note).check(items)
    by_system: dict[str, dict[str, list[int]]] = {}
    for number, item in enumerate(items):
        by_system.setdefault(item.system, {}).setdefault(item.group, []).append(number)
    whole = Batch.of(items).without_blank_references().with_positive_references()
    return [
        _score_system(metric, system, groups, whole)
        for metric in metrics
        for system, groups in by_system.items()
    ]


def _score_system(
    metric: SetMetric, system: str, groups: dict[str, list[int]], whole: Batch
) -> SystemScore:
    contexts: dict[str, float | str] = {}
    for context, numbers in groups.items():
        batch = whole.take(np.array(numbers, np.int64))
        contexts[context] = _measured(metric, batch)
    values = [value for value in contexts.values() if not isinstance(value, str)]
    if metric.pooled:
        everything = whole.take(np.array([n for group in groups.values() for n in group], np.int64))
        value = _measured(metric, everything)
        if isinstance(value, str):
            return SystemScore(metric, system, None, value, contexts)
        return SystemScore(metric, system, value, None, contexts)
    if not values:
        reason = next((v for v in contexts.values() if isinstance(v, str)), "no replies")
        return SystemScore(metric, system, None, reason, contexts)
    return SystemScore(metric, system, float(np.mean(values)), None, contexts)


def _measured(metric: SetMetric, batch: Batch) -> float | str:
    """Return the value of a set of replies, or the reason why it has none."""
    with third_party_errors(type(metric)):
        reason = metric.reason(batch)
        return checked_measure(metric, metric.measure(batch)) if reason is None else reason
