"""``embedding-average``: the cosine of the averages of word vectors (Foltz et al. 1998).

    e(t) = 1 / |t| · Σ_{w ∈ t} e(w)      score = cos(e(h), e(r))

Choices: words are split by ``tok`` and looked up in ``vectors``, lower-cased unless
``lower=false``. Words without a vector are left out, and so are references of such words only; a
reply of such words only is unscored. A blank reply is 0. The corpus value is the mean over items.
``--parts`` shows the share of words with a vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.metrics.batch import Ints
from rejoinder.metrics.embedding.static import PooledMetric
from rejoinder.metrics.embedding.vectors import Codes, Vectors


@dataclass(frozen=True, kw_only=True)
class EmbeddingAverage(PooledMetric):
    name: ClassVar[str] = "embedding-average"
    summary: ClassVar[str] = "cosine of averaged word vectors"

    def pool(self, vectors: Vectors, ids: Codes, starts: Ints) -> Vectors:
        from rejoinder.kernels.averages import directions

        return directions(ids, starts, vectors, np.ones(len(vectors), np.bool_))
