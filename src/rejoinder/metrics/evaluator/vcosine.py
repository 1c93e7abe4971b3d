"""``vcosine``: cosine of a reply with its references and those that an evaluator retrieves.

    v_j = cos(s(h), s(r_j)) - retrieved_penalty · [r_j was retrieved]
          - distance_penalty · (1 - n_j) - rating_penalty · (1 - w_j)
    score(h) = log Σ_j exp(b · v_j) / b

over the item's own references and those that the evaluator retrieved for it, where s(t) is the
vector of a text, n_j the similarity of the item's context to that of r_j, and w_j its rating. For a
reference of the item, n = 1, and w = 1 unless it has a weight; so a retrieved one raises the score
only if the reply is clearly nearer to it. The sum (``refs=soft(15)``) is a smooth maximum, like a
density of good replies. ``refs=max`` takes the nearest reference alone.

References of the item with a weight of 0 or less are left out. Retrieved ones stay, whatever their
rating: ratings may err, and leaving out more references in one context than in another would make
their scores incomparable. The parrot (the last turn of the context) is discounted like a retrieved
reference, but left out if it is rated 0 or less, since no context is nearer than its own. The
cosines of a blank reply are 0. A reply of words without vectors is unscored.

``vbleu`` multiplies by weights; here they are subtracted, because the cosine of unrelated texts
is not 0. The vectors are those that the evaluator retrieves references with, so the metric knows
all languages that the evaluator knows. The defaults of the penalties and of b were chosen on
DailyDialog++ dev and other turns of DailyDialog, with the vectors of MiniLM.

``evaluator``: a folder made by 'rejoinder fit'.  ``k``: number of references that are retrieved; by
default as many as the evaluator was made for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rejoinder.metrics.batch import FROM_ITEM, FROM_POOL, Batch, Floats
from rejoinder.metrics.embedding.static import add_missing_vectors
from rejoinder.metrics.evaluator.evaluator_metric import (
    TOLERANCE,
    ExpandingMetric,
    needs_evaluator,
)
from rejoinder.metrics.metric import check_range
from rejoinder.metrics.reasons import Reasons
from rejoinder.spec import Spec


@dataclass(frozen=True, kw_only=True)
class VCosine(ExpandingMetric):
    name: ClassVar[str] = "vcosine"
    summary: ClassVar[str] = "cosine to own and retrieved references, with penalties for the latter"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "references", "weights", "evaluator"})
    tolerance: ClassVar[float] = TOLERANCE

    refs: Spec = Spec("soft", (("b", 15),))
    retrieved_penalty: float = 0.2
    distance_penalty: float = 0.1
    rating_penalty: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("retrieved_penalty", "distance_penalty", "rating_penalty"):
            check_range(key, getattr(self, key), 0, 2)

    def missing_requirement(self) -> str | None:
        if self.evaluator is None:
            return needs_evaluator()
        has_vectors = self.opened_evaluator.encode is not None
        return None if has_vectors else "needs vectors, which its evaluator does not have"

    def vectors(self, batch: Batch) -> NDArray[np.float32]:
        """Return [texts of the table, d] unit vectors; zeros for texts without a vector."""
        evaluator = self.opened_evaluator
        texts = [text.strip() for text in batch.table.texts]
        return batch.table.cached((VCosine, str(evaluator)), lambda: evaluator.vectors(texts))

    def has_vector(self, batch: Batch) -> NDArray[np.bool_]:
        """Return [texts of the table] which of them have a vector."""
        return np.asarray(self.vectors(batch).any(axis=1))

    def reasons(self, batch: Batch) -> Reasons:
        batch = _usable(batch)
        return add_missing_vectors(super().reasons(batch), batch, self.has_vector(batch))

    def rows(self, batch: Batch) -> Floats:
        batch = _usable(batch)
        return super().rows(batch.keep_references(self.has_vector(batch)[batch.reference]))

    def stats(self, batch: Batch) -> Floats:
        """The cosine less the penalties, and 1."""
        vectors = self.vectors(batch)
        pairs = vectors[batch.reply], vectors[batch.reference]
        cosine = np.einsum("nd,nd->n", *pairs, dtype=np.float64)
        distance = 1 - np.minimum(batch.context_similarity, 1)  # BM25 has no highest similarity
        penalty = (
            self.retrieved_penalty * (batch.origin != FROM_ITEM)
            + self.distance_penalty * distance
            + self.rating_penalty * (1 - batch.weight)
        )
        return np.column_stack([cosine - penalty, np.ones(len(batch))])


def _usable(batch: Batch) -> Batch:
    """Return the batch without the items' own bad references, and without bad parrots."""
    return batch.keep_references((batch.origin == FROM_POOL) | (batch.weight > 0))
