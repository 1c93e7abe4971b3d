"""Unit vectors of texts: averages of the vectors of their words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels.compiled import compiled


@compiled
def _directions(ids, starts, vectors, has_vector, out):
    total = np.empty(vectors.shape[1], np.float64)
    for text in range(starts.size - 1):
        total[:] = 0.0
        for i in range(starts[text], starts[text + 1]):
            word = ids[i]
            if has_vector[word]:
                for j in range(total.size):
                    total[j] += vectors[word, j]
        square = 0.0
        for j in range(total.size):
            square += total[j] * total[j]
        # the sum has the same direction as the average
        scale = 1.0 / np.sqrt(square) if square > 0.0 else 0.0
        for j in range(total.size):
            out[text, j] = total[j] * scale


def directions(
    ids: NDArray[np.int32],
    starts: NDArray[np.int64],
    vectors: NDArray[np.float32],
    has_vector: NDArray[np.bool_],
) -> NDArray[np.float32]:
    """Return [n, d] the average of the word vectors of each text, scaled to length 1.

    Text i has the words ``ids[starts[i]:starts[i + 1]]``. The vector is zero for a text without
    known words, or whose words cancel out.
    """
    out = np.empty((starts.size - 1, vectors.shape[1]), np.float32)
    _directions(ids, starts, vectors, has_vector, out)
    return out
