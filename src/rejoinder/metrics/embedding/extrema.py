"""``vector-extrema``: cosine of the most extreme values of word vectors (Forgues et al. 2014).

    e(t)_d = max_w e(w)_d   if max_w e(w)_d ≥ |min_w e(w)_d|,   else min_w e(w)_d

in each dimension d, over the words w of the text t. Common words are near zero in most dimensions,
so that a text is described by its uncommon ones.

Choices: equally large extremes of both signs count as the positive one, as in the programs of
Liu et al. 2016 and in nlg-eval. Words are looked up as for ``embedding-average``: those without
a vector are left out, and a reply without others is unscored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.metrics.batch import Ints
from rejoinder.metrics.embedding.static import PooledMetric
from rejoinder.metrics.embedding.vectors import Codes, Vectors


@dataclass(frozen=True, kw_only=True)
class VectorExtrema(PooledMetric):
    name: ClassVar[str] = "vector-extrema"
    summary: ClassVar[str] = "cosine of the extreme values of word vectors"

    def pool(self, vectors: Vectors, ids: Codes, starts: Ints) -> Vectors:
        from rejoinder.kernels.extremes import extremes

        high, low = extremes(vectors, ids, starts)
        return np.where(high >= -low, high, low)
