"""Largest and smallest values of the word vectors of each text, in each dimension.

(``reduceat`` of numpy takes several times as long along the first axis, and needs a copy of the
vector of every word.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels.compiled import compiled

Vectors = NDArray[np.float32]
Codes = NDArray[np.int32]
Ints = NDArray[np.int64]


@compiled
def extremes(vectors: Vectors, ids: Codes, starts: Ints) -> tuple[Vectors, Vectors]:
    """Return [n, d] the highest and lowest values; zeros for a text without words.

    Text i has the words ``ids[starts[i]:starts[i + 1]]``, and word j the vector ``vectors[j]``.
    """
    high = np.zeros((len(starts) - 1, vectors.shape[1]), np.float32)
    low = np.zeros((len(starts) - 1, vectors.shape[1]), np.float32)
    for text in range(len(starts) - 1):
        if starts[text] == starts[text + 1]:
            continue
        high[text] = vectors[ids[starts[text]]]
        low[text] = vectors[ids[starts[text]]]
        for place in range(starts[text] + 1, starts[text + 1]):
            word = ids[place]
            for k in range(vectors.shape[1]):
                high[text, k] = max(high[text, k], vectors[word, k])
                low[text, k] = min(low[text, k], vectors[word, k])
    return high, low
