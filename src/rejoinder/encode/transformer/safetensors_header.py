"""Read the header of a safetensors file: names, types and shapes of its tensors.

A safetensors file begins with the length of its header (8 bytes, little-endian) and the header as
JSON. Reading only that takes no package, no torch and no time.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import msgspec

from rejoinder.errors import DataError
from rejoinder.files.paths import open_regular

MAX_HEADER_BYTES = 10**8
"""The limit of the safetensors library."""


class TensorInfo(msgspec.Struct, frozen=True):
    """Type, shape and position of a tensor in a file."""

    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


def read_header(path: Path) -> tuple[dict[str, TensorInfo], int]:
    """Return the tensors of a file by name, and the offset at which their data begin."""
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        length = int.from_bytes(stream.read(8), "little")
        if not 0 < length <= min(MAX_HEADER_BYTES, size - 8):
            raise _damaged(path, "the length of its header is wrong")
        text = stream.read(length)
    try:
        header = msgspec.json.decode(text, type=dict[str, Any])
        header.pop("__metadata__", None)
        tensors = msgspec.convert(header, dict[str, TensorInfo])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(path, str(error)) from None
    for name, tensor in tensors.items():
        begin, end = tensor.data_offsets
        if not 0 <= begin <= end <= size - 8 - length or min(tensor.shape, default=1) < 0:
            raise _damaged(path, f"the data of {name:.80} are outside the file")
    return tensors, 8 + length


def _damaged(path: Path, why: str) -> DataError:
    return DataError(f"is damaged or no safetensors file ({why})", path=str(path))
