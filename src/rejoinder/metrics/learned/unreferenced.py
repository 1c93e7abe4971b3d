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
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rejoinder.metrics.base import NO_CONTEXT, Reasons, WholeItemMetric
from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.evaluated import HOW, TOLERANCE, Evaluated

if TYPE_CHECKING:
    from rejoinder.metrics.sitting import Scored, Sitting


@dataclass(frozen=True, kw_only=True)
class Unreferenced(WholeItemMetric, Evaluated):
    name: ClassVar[str] = "unreferenced"
    summary: ClassVar[str] = "how well a reply fits its context, learned from logs"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "evaluator"})
    tolerance: ClassVar[float] = TOLERANCE

    def lacking(self) -> str | None:
        return HOW if self.evaluator is None else None

    def judge(self, sitting: Sitting) -> Scored:
        from rejoinder.metrics.sitting import judged

        return judged(self, sitting.batch, sitting.expansion(self.asked))

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

    def finish(self, rows: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            return np.asarray(rows[..., 0] / rows[..., 1])
