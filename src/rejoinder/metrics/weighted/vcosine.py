"""``vcosine``: how near a reply is to good ones, of which an evaluator finds many.

    v_j = cos(s(h), s(r_j)) - found · [r_j was retrieved] - far · (1 - n_j) - doubt · (1 - w_j)
    score(h) = log Σ_j exp(b · v_j) / b

over the references that an item came with and those that the evaluator retrieved for it, where
s(t) is the vector of a text, n_j the similarity of the contexts by which r_j was found, and w_j its
rating. A reference that an item came with is neither far nor in doubt (n = 1, and w = 1 unless
it has a weight), so a reply gains by a retrieved one only if it is clearly nearer to that. The sum
(``refs=soft(15)``) is a smooth maximum: a density of good replies around the one that is judged.
``refs=max`` takes the nearest alone.

References that an item came with and whose weight is not above 0 are left out. A retrieved one
stays, whatever its rating: a rating may err, and those that are left out would make scores of
contexts differ that have more or fewer of them. The parrot (the last turn itself) is discounted
like a retrieved one, but stays only if it is rated above 0: no context is nearer than its own. A
blank reply has no direction: its cosines are 0. A reply that has words, but none with a vector,
is unscored.

``vbleu`` multiplies by weights; here they are subtracted, because the cosine of unrelated texts
is not 0. Vectors are the evaluator's own, those that it finds references with: so the metric knows
every language that the evaluator knows. The defaults of ``found``, ``far``, ``doubt`` and b were
chosen on DailyDialog++ dev and other turns of DailyDialog, with the vectors of MiniLM.

``evaluator``: a folder made by 'rejoinder fit'.  ``k``: how many references are retrieved; by
default as many as the evaluator was made for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rejoinder.metrics.base import Reasons, check_range
from rejoinder.metrics.batch import FOUND, GIVEN, Batch, Floats
from rejoinder.metrics.embedding.static import unknown
from rejoinder.metrics.evaluated import HOW, TOLERANCE, Expanding
from rejoinder.spec import Spec


@dataclass(frozen=True, kw_only=True)
class VCosine(Expanding):
    name: ClassVar[str] = "vcosine"
    summary: ClassVar[str] = "cosine to retrieved references, less what is in doubt of them"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "references", "weights", "evaluator"})
    tolerance: ClassVar[float] = TOLERANCE

    refs: Spec = Spec("soft", (("b", 15),))
    found: float = 0.2
    far: float = 0.1
    doubt: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("found", "far", "doubt"):
            check_range(key, getattr(self, key), 0, 2)

    def lacking(self) -> str | None:
        if self.evaluator is None:
            return HOW
        return None if self.asked.encode is not None else "has no vectors: its evaluator has none"

    def vectors(self, batch: Batch) -> NDArray[np.float32]:
        """[texts of the table, d] vectors of length 1, zeros for a text that has none."""
        encode = self.asked.encode
        assert encode is not None  # see lacking
        texts = [text.strip() for text in batch.table.texts]
        return batch.table.once((VCosine, str(self.asked)), lambda: encode(texts))

    def known(self, batch: Batch) -> NDArray[np.bool_]:
        """[texts of the table] which of them have a vector."""
        return np.asarray(self.vectors(batch).any(axis=1))

    def reasons(self, batch: Batch) -> Reasons:
        batch = _not_bad(batch)
        return unknown(super().reasons(batch), batch, self.known(batch))

    def rows(self, batch: Batch) -> Floats:
        batch = _not_bad(batch)
        return super().rows(batch.only(self.known(batch)[batch.reference]))

    def stats(self, batch: Batch) -> Floats:
        """The cosine less the discounts, and 1."""
        vectors = self.vectors(batch)
        pairs = vectors[batch.reply], vectors[batch.reference]
        cosine = np.einsum("nd,nd->n", *pairs, dtype=np.float64)
        far = 1 - np.minimum(batch.near, 1)  # BM25 knows no highest similarity
        looked_for = batch.origin != GIVEN
        discount = self.found * looked_for + self.far * far + self.doubt * (1 - batch.weight)
        return np.column_stack([cosine - discount, np.ones(len(batch))])


def _not_bad(batch: Batch) -> Batch:
    """Without what an item came with as an example of a bad reply, and without a bad parrot."""
    return batch.only((batch.origin == FOUND) | (batch.weight > 0))
