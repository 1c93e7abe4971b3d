"""A batch before its judges: what one metric found out about it, the others need not repeat.

Metrics that ask the same evaluator share its expansion of the batch, and a metric that stands
inside another is scored once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from rejoinder.metrics.base import NO_REFERENCES, ONLY_BAD_REFERENCES, ItemMetric, Reasons
from rejoinder.metrics.batch import Batch, Floats, Ints
from rejoinder.progress import Progress

if TYPE_CHECKING:
    from rejoinder.evaluator.coverage import Coverage
    from rejoinder.evaluator.expand import Expansion
    from rejoinder.evaluator.folder import Evaluator
    from rejoinder.evaluator.seen import EvaluatedSet

T = TypeVar("T")


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
    expansion: Expansion | None = None
    """What the evaluator has for the items, if the metric asked one."""

    @property
    def scored(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.array([reason is None for reason in self.reasons], dtype=bool)

    @property
    def coverage(self) -> Coverage | None:
        """How well the evaluator's pool covers each item's context."""
        return None if self.expansion is None else self.expansion.coverage


@dataclass
class Sitting:
    """One batch, and what was found out about it so far."""

    batch: Batch
    examined: EvaluatedSet | None = None
    """All contexts that are evaluated, if the batch is a part of them only."""
    on_progress: Progress | None = None
    """Told how many items of how many are done, by metrics that judge the whole set at once."""
    _known: dict[Hashable, Any] = field(default_factory=dict)

    def score(self, metric: ItemMetric) -> Scored:
        """What a metric says of the batch."""
        return self._once(metric, lambda: metric.judge(self))

    def expansion(self, evaluator: Evaluator, k: int | None = None) -> Expansion:
        """What an evaluator has for the items of the batch."""
        from rejoinder.evaluator.seen import EvaluatedSet

        if self.examined is None:
            self.examined = EvaluatedSet.of(self.batch.items)
        leaks = self.examined.leaks(evaluator)
        k = evaluator.manifest.retrieval.k if k is None else k
        return self._once(
            ("expansion", str(evaluator), k),
            lambda: evaluator.expansion(self.batch.items, k, leaks),
        )

    def expanded(self, evaluator: Evaluator, k: int | None = None) -> Batch:
        """The batch with rated references."""
        found = self.expansion(evaluator, k)
        return self._once(("expanded", id(found)), lambda: Batch.of(found.items))

    def _once(self, key: Hashable, make: Callable[[], T]) -> T:
        if key not in self._known:
            self._known[key] = make()
        return cast(T, self._known[key])


def score_batch(metric: ItemMetric, batch: Batch) -> Scored:
    """What a metric says of a batch; items that it can't score get a reason and no value."""
    return Sitting(batch).score(metric)


def judged(metric: ItemMetric, batch: Batch, expansion: Expansion | None = None) -> Scored:
    """What a metric says of the references of a batch."""
    batch = batch.present()
    had_references = batch.counts > 0
    if "weights" not in metric.needs:
        batch = batch.positive()
    reasons = metric.reasons(batch)
    reasons[had_references & (reasons == NO_REFERENCES)] = ONLY_BAD_REFERENCES
    keep = np.flatnonzero([reason is None for reason in reasons])
    some = batch if len(keep) == len(batch) else batch.take(keep)
    rows = metric.rows(some) if len(keep) else np.zeros((0, 0))
    return laid_out(metric, batch, rows, keep, reasons, expansion)


def laid_out(
    metric: ItemMetric,
    batch: Batch,
    rows: Floats,
    keep: Ints,
    reasons: Reasons,
    expansion: Expansion | None = None,
) -> Scored:
    """The rows of those items that could be scored (``keep``), laid out over all of the batch."""
    values = metric.values(rows) if len(keep) else np.zeros(0)
    if not np.isfinite(values).all():
        wrong = batch.items[keep[np.argmin(np.isfinite(values))]].id
        raise FloatingPointError(f"{metric} gave the item '{wrong}' a score that is no number")
    if len(keep) == len(batch):
        return Scored(metric, values, rows, reasons, expansion)
    all_values = np.full(len(batch), np.nan)
    all_values[keep] = values
    all_rows = np.zeros((len(batch), rows.shape[1]))
    all_rows[keep] = rows
    return Scored(metric, all_values, all_rows, reasons, expansion)
