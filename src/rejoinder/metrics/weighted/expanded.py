"""``expanded``: any metric over the references that an evaluator retrieved, too.

    score(h) = d(h; r_1 … r_m, r_{m+1} … r_{m+k})

where the first m references are those that the item came with, and the others the responses of
the k pairs of the evaluator's pool that are nearest to the item, with the evaluator's ratings. A
metric ``d`` that reads no weights sees those whose rating is above 0.

``d``: the metric.  ``evaluator``: a folder made by 'rejoinder fit'.  ``k``: how many responses are
retrieved; by default as many as the evaluator was made for. How references are pooled is a
parameter of ``d``: ``expanded(d=sentence-cosine(refs=mean))``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from rejoinder.metrics.base import ItemMetric, Reasons, WholeItemMetric
from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.evaluated import HOW, TOLERANCE, Expanding
from rejoinder.metrics.inner import inner_metric, signed_inner
from rejoinder.spec import Spec


@dataclass(frozen=True, kw_only=True)
class Expanded(WholeItemMetric, Expanding):
    name: ClassVar[str] = "expanded"
    summary: ClassVar[str] = "metric d over references that an evaluator retrieved"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "evaluator"})
    tolerance: ClassVar[float] = TOLERANCE

    d: Spec = Spec("sentence-cosine")

    def __post_init__(self) -> None:
        super().__post_init__()
        if getattr(self.metric, "evaluator", None) is not None or (
            "references" not in self.metric.needs
        ):
            raise ValueError(
                f"d={self.d} is not a metric over the references of an item;"
                " an evaluator is given to expanded itself"
            )
        # what is true of d is true of the whole: which references it sees, what is better
        for key in ("needs", "higher_is_better"):
            object.__setattr__(self, key, getattr(self.metric, key))

    @cached_property
    def metric(self) -> ItemMetric:
        return inner_metric("d", self.d)

    def _signed(self, key: str) -> str:
        return signed_inner(self.metric) if key == "d" else super()._signed(key)

    def lacking(self) -> str | None:
        return HOW if self.evaluator is None else None

    def notes(self) -> list[str]:
        return self.metric.notes()

    def reasons(self, batch: Batch) -> Reasons:
        return self.metric.reasons(batch)

    def stats(self, batch: Batch) -> Floats:
        return self.metric.rows(batch)

    def finish(self, rows: Floats) -> Floats:
        return self.metric.values(rows)

    def parts(self, rows: Floats) -> dict[str, Floats]:
        return self.metric.ingredients(rows)
