"""``rating``: how an evaluator's NN-rater rates the reply itself (Tsuta et al. 2020, § 4.2).

    score = mean over references r of rating(c, r, h), from -1 to 1

The rater was trained to say whether a retrieved reply fits an utterance to which a good reply is
known; here it rates the reply of a system instead. The item's own references are the good replies:
the first four of them count, as in ratings of retrieved references.

Choices: an item without context is unscored; a blank reply is -1. The corpus value is the mean
over items. An evaluator has no rater if its logs were not enough to train one; then all items are
unscored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.evaluator.rating import NO_RATER, good_references, rate_replies
from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.evaluator.evaluator_metric import NetworkMetric
from rejoinder.metrics.metric import has_context
from rejoinder.metrics.reasons import NO_CONTEXT, Reasons

NO_GOOD_REFERENCE = "no reference that is known to be good"


@dataclass(frozen=True, kw_only=True)
class Rating(NetworkMetric):
    name: ClassVar[str] = "rating"
    summary: ClassVar[str] = "how an evaluator's rater rates the reply, given good ones"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "references", "evaluator"})

    def reasons(self, batch: Batch) -> Reasons:
        reasons = super().reasons(batch)
        for number, item in enumerate(batch.items):
            if not self.opened_evaluator.has_rater:
                reasons[number] = NO_RATER
            elif not has_context(item):
                reasons[number] = NO_CONTEXT
            elif not good_references(item):
                reasons[number] = NO_GOOD_REFERENCE
        return reasons

    def stats(self, batch: Batch) -> Floats:
        """The rating, and 1."""
        ratings = np.full(len(batch), -1.0)
        present = np.flatnonzero(~batch.table.blank[batch.reply])
        if present.size:
            items = [batch.items[number] for number in present.tolist()]
            ratings[present] = rate_replies(self.opened_evaluator, items)
        return np.column_stack([ratings, np.ones(len(batch))])
