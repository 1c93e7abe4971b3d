"""Unit vectors and cosines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rejoinder.metrics.batch import Floats, Ints

Vectors = NDArray[np.float32]
Codes = NDArray[np.int32]


def unit(vectors: Vectors) -> Vectors:
    """Return the rows normalised to length 1; rows of zeros stay."""
    length = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64))
    length[length == 0] = 1.0
    return np.asarray(vectors / length[:, None].astype(np.float32))


def cosines(vectors: Vectors, left: Ints, right: Ints) -> Floats:
    """Return the cosine of rows ``left`` with rows ``right``; 0 if one is zero."""
    rows = unit(vectors)
    return np.asarray(np.einsum("nd,nd->n", rows[left], rows[right], dtype=np.float64))
