"""``expanded``: any metric over the item's references and those that an evaluator retrieves.

    score(h) = d(h; r_1 … r_m, r_{m+1} … r_{m+k})

where the first m references are the item's own, and the others the responses of the k pairs of the
evaluator's pool that are nearest to the item, weighted by the evaluator's ratings. If the metric
``d`` reads no weights, only references with a rating above 0 count.

``d``: the metric.  ``evaluator``: a folder made by 'rejoinder fit'.  ``k``: number of retrieved
responses; by default as many as the evaluator was made for. How references are pooled is a
parameter of ``d``: ``expanded(d=sentence-cosine(refs=mean))``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.evaluator.evaluator_metric import (
    TOLERANCE,
    ExpandingMetric,
    needs_evaluator,
)
from rejoinder.metrics.metric import ItemMetric, WholeItemMetric, nested_default
from rejoinder.metrics.reasons import Reasons

SENTENCE_COSINE = nested_default("sentence-cosine")


@dataclass(frozen=True, kw_only=True)
class Expanded(WholeItemMetric, ExpandingMetric):
    name: ClassVar[str] = "expanded"
    summary: ClassVar[str] = "metric d over references that an evaluator retrieves"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "evaluator"})
    tolerance: ClassVar[float] = TOLERANCE

    nested: ClassVar[tuple[str, ...]] = ("d",)

    d: ItemMetric = SENTENCE_COSINE

    def __post_init__(self) -> None:
        super().__post_init__()
        if getattr(self.d, "evaluator", None) is not None or ("references" not in self.d.needs):
            raise ValueError(
                f"d={self.d} is not a metric over the references of an item;"
                " the evaluator is a parameter of expanded itself"
            )
        # as d: which references it reads, and which values are better
        for key in ("needs", "higher_is_better"):
            object.__setattr__(self, key, getattr(self.d, key))

    def missing_requirement(self) -> str | None:
        return needs_evaluator() if self.evaluator is None else None

    def notes(self) -> list[str]:
        return self.d.notes()

    def languages(self) -> dict[str, frozenset[str]]:
        return super().languages() | self.d.languages()

    def reasons(self, batch: Batch) -> Reasons:
        return self.d.reasons(batch)

    def stats(self, batch: Batch) -> Floats:
        return self.d.rows(batch)

    def finish(self, rows: Floats) -> Floats:
        return self.d.values(rows)

    def parts(self, rows: Floats) -> dict[str, Floats]:
        return self.d.ingredients(rows)
