"""``unreferenced``: how well a reply fits its context, by an evaluator that learned it from logs.

    score = s(c, h) in (0, 1)

the unreferenced scorer of RUBER (Tao et al. 2018, § 3.2), or of Ghazarian et al. 2019, as the
evaluator has it: a network that was trained to tell the reply that somebody gave from replies
that were given to something else. It reads no references, so it needs nothing but logs.

Choices: an item without context is unscored; a blank reply is 0. The corpus value is the mean
over items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.metrics.base import NO_CONTEXT, Reasons
from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.evaluated import Asking


@dataclass(frozen=True, kw_only=True)
class Unreferenced(Asking):
    name: ClassVar[str] = "unreferenced"
    summary: ClassVar[str] = "how well a reply fits its context, learned from logs"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "evaluator"})
    probability: ClassVar[bool] = True

    def reasons(self, batch: Batch) -> Reasons:
        found = super().reasons(batch)
        for number, item in enumerate(batch.items):
            if not any(turn.strip() for turn in item.context):
                found[number] = NO_CONTEXT
        return found

    def stats(self, batch: Batch) -> Floats:
        """The score, and 1."""
        scores = np.zeros(len(batch))
        said = np.flatnonzero(~batch.table.blank[batch.reply])
        if said.size:
            some = [batch.items[number] for number in said.tolist()]
            scores[said] = self.asked.scorer.score(
                [item.context for item in some], [item.response for item in some]
            )
        return np.column_stack([scores, np.ones(len(batch))])
