"""Base class of metrics that compare a reply with what the same speaker said before.

Two speakers are assumed to take turns: the second to last turn of the context is the speaker's own,
and so is every second one before it. They take the place of the references, so that any referenced
metric can compare the reply with them.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import msgspec
import numpy as np

from rejoinder.items import Item, Reference
from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.batch_scores import BatchScores, batch_scores, score_references
from rejoinder.metrics.metric import ItemMetric, WholeItemMetric
from rejoinder.metrics.reasons import NO_CONTEXT, NO_REFERENCES, Reasons
from rejoinder.metrics.scoring_context import ScoringContext

NO_OWN_TURN = "no earlier turn of the same speaker"


@dataclass(frozen=True, kw_only=True)
class OwnTurnsMetric(WholeItemMetric):
    """A metric with a value for each reply that has an earlier turn of its speaker."""

    needs: ClassVar[frozenset[str]] = frozenset({"context"})

    @abstractmethod
    def compare(self, batch: Batch) -> tuple[Floats, Reasons]:
        """Return the value of each item and why it has none, or None; the references of the batch
        are the speaker's own turns, one at least."""

    def score(self, scoring: ScoringContext) -> BatchScores:
        whole = scoring.batch
        turns = Batch.of([with_own_turns(item) for item in whole.items]).without_blank_references()
        reasons: Reasons = np.full(len(whole), None, object)
        reasons[turns.counts == 0] = NO_OWN_TURN
        reasons[[not any(turn.strip() for turn in item.context) for item in whole.items]] = (
            NO_CONTEXT
        )
        keep = np.flatnonzero([reason is None for reason in reasons])
        values = np.zeros(0)
        if keep.size:
            values, reasons[keep] = self.compare(turns.take(keep))
            scored = np.array([reason is None for reason in reasons[keep]], bool)
            keep, values = keep[scored], values[scored]
        return batch_scores(
            self, whole, np.column_stack([values, np.ones(len(keep))]), keep, reasons
        )

    def stats(self, batch: Batch) -> Floats:
        """The value, and 1."""
        return self.score(ScoringContext(batch)).rows


def with_own_turns(item: Item) -> Item:
    """Return the item with the earlier turns of its speaker as references."""
    return msgspec.structs.replace(item, references=[Reference(t) for t in item.context[-2::-2]])


def compared(metric: ItemMetric, batch: Batch) -> tuple[Floats, Reasons]:
    """Return the values of a referenced metric whose references are the speaker's own turns."""
    scores = score_references(metric, batch)
    scores.reasons[scores.reasons == NO_REFERENCES] = NO_OWN_TURN
    return scores.values, scores.reasons


def check_comparable(key: str, metric: ItemMetric) -> None:
    """Raise ValueError unless a metric compares a reply with plain references, by itself."""
    if "references" not in metric.needs or metric.needs_whole_set or metric.evaluators():
        raise ValueError(f"{key}={metric} does not compare a reply with single references")
