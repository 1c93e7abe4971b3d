"""``rating``: what an evaluator's NN-rater says of the reply itself (Tsuta et al. 2020, § 4.2).

    score = mean over references r of rating(c, r, h), from -1 to 1

The rater was trained to say whether a retrieved reply may answer an utterance to which a good reply
is known; here it is asked about the reply of a system instead. The references that the item came
with are the good replies: the first four of them count, as in ratings of retrieved references.

Choices: an item without context is unscored; a blank reply is -1. The corpus value is the mean
over items. An evaluator whose logs were not enough to train a rater has none, and can't be asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.evaluator.rating import NO_RATER, known_good, rate_replies
from rejoinder.metrics.base import NO_CONTEXT, Reasons
from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.evaluated import Asking

NONE_GOOD = "no reference that is known to be good"


@dataclass(frozen=True, kw_only=True)
class Rating(Asking):
    name: ClassVar[str] = "rating"
    summary: ClassVar[str] = "what an evaluator's rater says of the reply, given good ones"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "references", "evaluator"})

    def reasons(self, batch: Batch) -> Reasons:
        found = super().reasons(batch)
        for number, item in enumerate(batch.items):
            if self.asked.rater is None:
                found[number] = NO_RATER
            elif not any(turn.strip() for turn in item.context):
                found[number] = NO_CONTEXT
            elif not known_good(item):
                found[number] = NONE_GOOD
        return found

    def stats(self, batch: Batch) -> Floats:
        """The rating, and 1."""
        ratings = np.full(len(batch), -1.0)
        said = np.flatnonzero(~batch.table.blank[batch.reply])
        if said.size:
            some = [batch.items[number] for number in said.tolist()]
            ratings[said] = rate_replies(self.asked, some)
        return np.column_stack([ratings, np.ones(len(batch))])
