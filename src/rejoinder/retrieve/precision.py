"""How the numbers of stored vectors are written: ``float32``, ``float16`` or ``int8``.

``float16`` halves a pool on disk, ``int8`` quarters it.  An int8 row is the vector divided by a
scale of its own (its largest number / 127), rounded; the four bytes of the scale, a float32, are at
its end.  So a number is off by at most half a scale.  Searching computes with what is stored, in
the same way for all, so the hits are exact for the stored vectors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

SCALE_BYTES = 4
LARGEST = 127


@dataclass(frozen=True)
class Precision:
    """One way to write the numbers."""

    name: str
    dtype: str
    extra: int = 0
    """Columns of a stored row besides its numbers."""

    @property
    def bytes(self) -> int:
        """Bytes of a number."""
        return np.dtype(self.dtype).itemsize

    def pack(self, vectors: Vectors) -> NDArray[np.generic]:
        """Return what is stored, [n, d] → [n, d + extra]."""
        if not self.extra:
            return np.ascontiguousarray(vectors, self.dtype)
        scales = np.abs(vectors).max(axis=1, keepdims=True, initial=0).astype("<f4") / LARGEST
        scales = scales.astype("<f4")
        whole = np.divide(vectors, scales, out=np.zeros_like(vectors), where=scales > 0)
        packed = np.empty((len(vectors), vectors.shape[1] + self.extra), self.dtype)
        packed[:, : -self.extra] = np.rint(whole)
        packed[:, -self.extra :] = scales.view(self.dtype)
        return packed

    def unpack(self, stored: NDArray[np.generic]) -> Vectors:
        """Return vectors from what is stored."""
        if not self.extra:
            return np.asarray(stored, np.float32)
        scales = np.ascontiguousarray(stored[:, -self.extra :]).view("<f4")
        return np.asarray(stored[:, : -self.extra].astype(np.float32) * scales, np.float32)


PRECISIONS = {
    each.name: each
    for each in (
        Precision("float32", "<f4"),
        Precision("float16", "<f2"),
        Precision("int8", "i1", SCALE_BYTES),
    )
}


def precision_of(dtype: np.dtype[np.generic]) -> Precision:
    """Return the precision of a file with numbers of this type."""
    return next(each for each in PRECISIONS.values() if np.dtype(each.dtype) == dtype)
