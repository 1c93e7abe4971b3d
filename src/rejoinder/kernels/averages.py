"""Texts as the direction of the average of their words' vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels.compiled import compiled


@compiled
def _directions(ids, starts, vectors, known, out):
    total = np.empty(vectors.shape[1], np.float64)
    for text in range(starts.size - 1):
        total[:] = 0.0
        for i in range(starts[text], starts[text + 1]):
            word = ids[i]
            if known[word]:
                for j in range(total.size):
                    total[j] += vectors[word, j]
        square = 0.0
        for j in range(total.size):
            square += total[j] * total[j]
        # a sum has the direction of the average
        scale = 1.0 / np.sqrt(square) if square > 0.0 else 0.0
        for j in range(total.size):
            out[text, j] = total[j] * scale


def directions(
    ids: NDArray[np.int32],
    starts: NDArray[np.int64],
    vectors: NDArray[np.float32],
    known: NDArray[np.bool_],
) -> NDArray[np.float32]:
    """[n, d] vectors of length 1: text i has the words ``ids[starts[i]:starts[i + 1]]``.

    A text without a known word, or whose words cancel out, has zeros.
    """
    out = np.empty((starts.size - 1, vectors.shape[1]), np.float32)
    _directions(ids, starts, vectors, known, out)
    return out
