"""The scores of one batch by one metric, and how they follow from the metric's statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rejoinder.errors import DataError
from rejoinder.metrics.batch import Batch, Floats, Ints
from rejoinder.metrics.reasons import NO_REFERENCES, ONLY_BAD_REFERENCES, Reasons

if TYPE_CHECKING:
    from rejoinder.evaluator.coverage import Coverage
    from rejoinder.evaluator.expansion import Expansion
    from rejoinder.metrics.metric import ItemMetric


@dataclass(frozen=True)
class BatchScores:
    """The scores of one batch by one item metric."""

    metric: ItemMetric
    values: Floats
    """[n] the score of each item; NaN if it is unscored."""
    rows: Floats
    """[n, d] the statistics of each item, zeros if it is unscored, so that they add up. If no item
    of the batch could be scored, d is 0."""
    reasons: Reasons
    """[n] why an item is unscored, or None."""
    expansion: Expansion | None = None
    """The references that the evaluator retrieved, if the metric has one."""
    judging: Sequence[dict[str, float] | None] | None = None
    """How a language model judged each item, if the metric asks one."""
    seconds: float = 0.0
    """What it took to score the batch; what several metrics share counts for the first of them."""

    @property
    def scored(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """[n] whether each item has a score."""
        return np.array([reason is None for reason in self.reasons], dtype=bool)

    @property
    def coverage(self) -> Coverage | None:
        """How well the evaluator's logs cover the context of each item."""
        return None if self.expansion is None else self.expansion.coverage


def score_references(
    metric: ItemMetric, batch: Batch, expansion: Expansion | None = None
) -> BatchScores:
    """Score a batch by the references that its items have."""
    batch = batch.without_blank_references()
    had_references = batch.counts > 0
    if "weights" not in metric.needs:
        batch = batch.with_positive_references()
    reasons = metric.reasons(batch)
    reasons[had_references & (reasons == NO_REFERENCES)] = ONLY_BAD_REFERENCES
    keep = np.flatnonzero([reason is None for reason in reasons])
    some = batch if len(keep) == len(batch) else batch.take(keep)
    rows = metric.rows(some) if len(keep) else np.zeros((0, 0))
    return batch_scores(metric, batch, rows, keep, reasons, expansion)


def batch_scores(
    metric: ItemMetric,
    batch: Batch,
    rows: Floats,
    keep: Ints,
    reasons: Reasons,
    expansion: Expansion | None = None,
) -> BatchScores:
    """Compute the scores of a batch from the statistics of the items numbered ``keep``."""
    values = metric.values(rows) if len(keep) else np.zeros(0)
    if not np.isfinite(values).all():
        item = batch.items[keep[np.argmin(np.isfinite(values))]]
        raise DataError(
            f"{metric} gave the item '{item.id}' a score that is not finite; its model is damaged,"
            " or the metric has a bug"
        )
    if len(keep) == len(batch):
        return BatchScores(metric, values, rows, reasons, expansion)
    all_values = np.full(len(batch), np.nan)
    all_values[keep] = values
    all_rows = np.zeros((len(batch), rows.shape[1]))
    all_rows[keep] = rows
    return BatchScores(metric, all_values, all_rows, reasons, expansion)
