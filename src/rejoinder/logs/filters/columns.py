"""Convert columns of text to the arrays that compiled loops read, and back, without copies."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


def buffers(texts: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Return the bytes of a column of strings, and where each row begins."""
    _, offsets, data = texts.buffers()
    if len(texts) == 0 or offsets is None:
        return np.empty(0, np.uint8), np.zeros(1, np.int32)
    starts = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return (np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)), starts


def strings(data: NDArray[np.uint8], offsets: NDArray[np.int32]) -> pa.Array:
    """Return the column of strings with these bytes and starts."""
    return pa.StringArray.from_buffers(offsets.size - 1, pa.py_buffer(offsets), pa.py_buffer(data))


def differ(one: pa.Array, other: pa.Array) -> NDArray[np.bool_]:
    """Return where two columns of strings differ."""
    return pc.not_equal(one, other).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def put(texts: pa.Array, where: NDArray[np.bool_], values: pa.Array) -> pa.Array:
    """Return ``texts`` with ``values`` in the rows of ``where``."""
    return values if where.all() else pc.replace_with_mask(texts, pa.array(where), values)
