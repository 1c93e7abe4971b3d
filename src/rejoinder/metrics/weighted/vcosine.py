"""``vcosine``: how near a reply is to a good one, of which an evaluator finds many.

    score(h) = max_j  cos(s(h), s(r_j)) - far · (1 - n_j) - doubt · (1 - w_j)

over the references that an item came with and those that the evaluator retrieved for it, where
s(t) is the vector of a text, n_j the similarity of the contexts by which r_j was found, and w_j its
rating. A reference that an item came with is neither far nor in doubt (n = 1, and w = 1 unless
it has a weight), so a reply gains by a retrieved one only if it is clearly nearer to that.
References whose weight is not above 0 are left out. A blank reply has no direction: its cosines
are 0. A reply that has words, but none with a vector, is unscored.

``vbleu`` multiplies by weights; here they are subtracted, because the cosine of unrelated texts
is not 0. Vectors are the evaluator's own, those that it finds references with: so the metric knows
every language that the evaluator knows. The defaults of ``far`` and ``doubt`` were chosen on
DailyDialog++ dev with the vectors of MiniLM.

``evaluator``: a folder made by 'rejoinder fit'.  ``k``: how many references are retrieved; by
default as many as the evaluator was made for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rejoinder.metrics.base import Reasons, check_range
from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.embedding.static import unknown
from rejoinder.metrics.evaluated import HOW, TOLERANCE, Expanding


@dataclass(frozen=True, kw_only=True)
class VCosine(Expanding):
    name: ClassVar[str] = "vcosine"
    summary: ClassVar[str] = "cosine to retrieved references, less what is in doubt of them"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "references", "evaluator"})
    tolerance: ClassVar[float] = TOLERANCE

    far: float = 0.3
    doubt: float = 0.15

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("far", "doubt"):
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
        return unknown(super().reasons(batch), batch, self.known(batch))

    def rows(self, batch: Batch) -> Floats:
        return super().rows(batch.only(self.known(batch)[batch.reference]))

    def stats(self, batch: Batch) -> Floats:
        """The cosine less the discounts, and 1."""
        vectors = self.vectors(batch)
        pairs = vectors[batch.reply], vectors[batch.reference]
        cosine = np.einsum("nd,nd->n", *pairs, dtype=np.float64)
        far = 1 - np.minimum(batch.near, 1)  # BM25 knows no highest similarity
        discount = self.far * far + self.doubt * (1 - batch.weight)
        return np.column_stack([cosine - discount, np.ones(len(batch))])
