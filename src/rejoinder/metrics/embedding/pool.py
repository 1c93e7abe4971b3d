"""``vector-pool``: cosine of the largest and smallest values of word vectors (RUBER, § 3.1).

    v(t) = [max_w e(w); min_w e(w)]      score = cos(v(h), v(r))

Tao et al. 2018 compare a reply with the reference (RUBER's referenced scorer), and with the query,
to show that replies resemble it: ``against=query`` takes the last turn of the context in place of
the references. An item without context is then unscored.

Choices: the score is the cosine itself; it is normalised to [0, 1] only when it is blended
(``ruber``). Words are looked up as for ``embedding-average``: those without a vector are left out,
and a reply without others is unscored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.metrics.batch import Batch, Floats, Ints
from rejoinder.metrics.embedding.static import UNKNOWN_REFERENCES, PooledMetric
from rejoinder.metrics.embedding.vectors import Codes, Vectors
from rejoinder.metrics.metric import check_choice
from rejoinder.metrics.reasons import NO_CONTEXT, Reasons

AGAINST = ("reference", "query")
UNKNOWN_QUERY = "no word of the last turn of the context has a vector"


@dataclass(frozen=True, kw_only=True)
class VectorPool(PooledMetric):
    name: ClassVar[str] = "vector-pool"
    summary: ClassVar[str] = "cosine of the largest and smallest values of word vectors"

    against: str = "reference"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("against", self.against, AGAINST)
        if self._of_query:
            # a class attribute elsewhere; here it depends on a parameter
            object.__setattr__(self, "needs", frozenset({"context"}))

    @property
    def _of_query(self) -> bool:
        return self.against == "query"

    def reasons(self, batch: Batch) -> Reasons:
        if not self._of_query:
            return super().reasons(batch)
        reasons = super().reasons(batch.with_last_turn_as_reference)
        reasons[reasons == UNKNOWN_REFERENCES] = UNKNOWN_QUERY
        reasons[batch.with_last_turn_as_reference.counts == 0] = NO_CONTEXT
        return reasons

    def rows(self, batch: Batch) -> Floats:
        return super().rows(batch.with_last_turn_as_reference if self._of_query else batch)

    def pool(self, vectors: Vectors, ids: Codes, starts: Ints) -> Vectors:
        from rejoinder.kernels.extremes import extremes

        return np.concatenate(extremes(vectors, ids, starts), axis=1)
