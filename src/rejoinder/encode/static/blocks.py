"""Files that are mapped, and checked where they are read.

A damaged part must not become a wrong score. But to read gigabytes at every start only to know
that they are sound would take the use out of mapping them. So a file has a digest for every block,
and a block is compared with its digest when it is first read.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.static.vectors import Floats, Ints
from rejoinder.errors import DataError

BLOCK = 2**20
REMEDY = "the folder is damaged; delete it and make it anew"


class Part(msgspec.Struct, frozen=True):
    """What the manifest says of a file."""

    bytes: int
    blocks: tuple[str, ...]
    """The first 16 hex digits of the SHA-256 of every block of 1 MiB."""

    @classmethod
    def of(cls, path: Path) -> Part:
        with path.open("rb") as stream:
            blocks = tuple(_digest(block) for block in iter(lambda: stream.read(BLOCK), b""))
        return cls(path.stat().st_size, blocks)


class Mapped:
    """One file of a folder."""

    def __init__(self, path: Path, part: Part) -> None:
        self.path, self._part = path, part
        try:
            size = path.stat().st_size
        except OSError:
            raise DataError(f"is missing; {REMEDY}", path=str(path)) from None
        if size != part.bytes or len(part.blocks) != -(-size // BLOCK):
            raise DataError(f"has {size} bytes, expected {part.bytes}; {REMEDY}", path=str(path))
        try:
            self._bytes = np.memmap(path, np.uint8, "r").data
        except (OSError, ValueError) as error:
            raise DataError(f"cannot be read: {error}", path=str(path)) from None
        self._unread = np.ones(len(part.blocks), bool)

    def check(self, blocks: Ints | None = None) -> None:
        """Compare blocks with their digests, all by default; each once."""
        wanted = np.arange(len(self)) if blocks is None else blocks
        for block in np.unique(wanted[self._unread[wanted]]).tolist():
            data = self._bytes[block * BLOCK : (block + 1) * BLOCK]
            if _digest(data) != self._part.blocks[block]:
                raise DataError(
                    f"MiB {block + 1} is not as it was written; {REMEDY}", path=str(self.path)
                )
            self._unread[block] = False

    def __len__(self) -> int:
        return len(self._part.blocks)

    @property
    def text(self) -> memoryview:
        """All bytes, checked."""
        self.check()
        return self._bytes

    def array(self, dtype: type[np.generic], shape: tuple[int, ...]) -> NDArray[np.generic]:
        """The array of an .npy file, its header checked."""
        self.check(np.zeros(1, np.int64))
        try:
            array = np.load(self.path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise DataError(f"cannot be read: {error}; {REMEDY}", path=str(self.path)) from None
        if array.dtype != np.dtype(dtype) or array.shape != shape:
            raise DataError(
                f"has {array.dtype} {array.shape}, expected {np.dtype(dtype)} {shape}; {REMEDY}",
                path=str(self.path),
            )
        return np.asarray(array)


class MappedMatrix:
    """A matrix of float32 in an .npy file; rows are checked when they are read."""

    def __init__(self, path: Path, part: Part, rows: int, dimensions: int) -> None:
        self._file = Mapped(path, part)
        self.array: Floats = self._file.array(np.float32, (rows, dimensions))  # type: ignore[assignment]
        self._stride = 4 * dimensions
        self._offset = part.bytes - rows * self._stride

    def take(self, rows: Ints) -> Floats:
        self.check(rows)
        return self.array[rows]

    def check(self, rows: Ints) -> None:
        if rows.size:
            begins = self._offset + rows * self._stride
            blocks = np.concatenate([begins // BLOCK, (begins + self._stride - 1) // BLOCK])
            self._file.check(blocks)


def _digest(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
