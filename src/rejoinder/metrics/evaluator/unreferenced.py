"""``unreferenced``: how well a reply fits its context, by a network that was trained on logs.

    score = s(c, h) in (0, 1)

the unreferenced scorer of RUBER (Tao et al. 2018, § 3.2), or of Ghazarian et al. 2019, as the
evaluator has it: a network that was trained to tell the reply to a context from replies to other
contexts. It reads no references, so it needs nothing but logs.

Choices: an item without context is unscored; a blank reply is 0. The corpus value is the mean
over items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.evaluator.evaluator_metric import NetworkMetric


@dataclass(frozen=True, kw_only=True)
class Unreferenced(NetworkMetric):
    name: ClassVar[str] = "unreferenced"
    summary: ClassVar[str] = "how well a reply fits its context, learned from logs"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "evaluator"})
    probability: ClassVar[bool] = True

    def stats(self, batch: Batch) -> Floats:
        """The score, and 1."""
        scores = np.zeros(len(batch))
        present = np.flatnonzero(~batch.table.blank[batch.reply])
        if present.size:
            items = [batch.items[number] for number in present.tolist()]
            scores[present] = self.opened_evaluator.score(
                [item.context for item in items], [item.response for item in items]
            )
        return np.column_stack([scores, np.ones(len(batch))])
