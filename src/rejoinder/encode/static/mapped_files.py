"""Memory-mapped files that are checked block by block when they are read.

A damaged file must not become a wrong score, but reading gigabytes at every start only to verify
them would defeat memory mapping. So the manifest has a digest for every block of a file, and a
block is compared with its digest when it is first read.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.static.word_vectors import Floats, Ints
from rejoinder.errors import DataError
from rejoinder.files.checked import check_values, read_array
from rejoinder.files.paths import is_file, open_regular, reason

BLOCK = 2**20
REMEDY = "the folder is damaged; delete it and make it again"


class Part(msgspec.Struct, frozen=True):
    """The entry of a file in the manifest."""

    bytes: int
    blocks: tuple[str, ...]
    """The first 16 hex digits of the SHA-256 of every block of 1 MiB."""

    @classmethod
    def of(cls, path: Path) -> Part:
        """Compute the entry of a file."""
        with path.open("rb") as stream:
            blocks = tuple(_digest(block) for block in iter(lambda: stream.read(BLOCK), b""))
        return cls(path.stat().st_size, blocks)


class MappedFile:
    """One memory-mapped file of a folder."""

    def __init__(self, path: Path, part: Part) -> None:
        self.path, self._part = path, part
        if not is_file(path):
            raise DataError(f"is missing; {REMEDY}", path=str(path))
        with open_regular(path) as stream:
            size = stream.seek(0, 2)
        if size != part.bytes or len(part.blocks) != -(-size // BLOCK):
            raise DataError(f"has {size} bytes, expected {part.bytes}; {REMEDY}", path=str(path))
        try:
            self._bytes = np.memmap(path, np.uint8, "r").data
        except OSError as error:
            raise DataError(f"cannot be read: {reason(error)}", path=str(path)) from None
        except ValueError as error:
            raise DataError(f"cannot be read: {error}; {REMEDY}", path=str(path)) from None
        self._unchecked = np.ones(len(part.blocks), bool)

    def check(self, blocks: Ints | None = None) -> None:
        """Compare blocks (None: all) with their digests; each block is compared once."""
        requested = np.arange(len(self)) if blocks is None else blocks
        for block in np.unique(requested[self._unchecked[requested]]).tolist():
            data = self._bytes[block * BLOCK : (block + 1) * BLOCK]
            if _digest(data) != self._part.blocks[block]:
                raise DataError(
                    f"MiB {block + 1} does not have its checksum; {REMEDY}", path=str(self.path)
                )
            self._unchecked[block] = False

    def __len__(self) -> int:
        return len(self._part.blocks)

    @property
    def content(self) -> memoryview:
        """All bytes, checked."""
        self.check()
        return self._bytes

    def array(self, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return the mapped array of an .npy file; only its header is checked."""
        self.check(np.zeros(1, np.int64))
        return np.asarray(read_array(self.path, dtype=dtype, shape=shape, mmap=True))


class MappedMatrix:
    """A float32 matrix in an .npy file; rows are checked when they are read."""

    def __init__(self, path: Path, part: Part, rows: int, dimensions: int) -> None:
        self._file = MappedFile(path, part)
        self.array: Floats = self._file.array("float32", (rows, dimensions))
        self._row_bytes = 4 * dimensions
        self._offset = part.bytes - rows * self._row_bytes

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    def take(self, rows: Ints) -> Floats:
        """Return a copy of some rows."""
        self.check(rows)
        vectors = self.array[rows]
        check_values(self.path, vectors, finite=True)
        return vectors

    def check(self, rows: Ints) -> None:
        """Compare the blocks of some rows with their digests."""
        if rows.size:
            begins = self._offset + rows * self._row_bytes
            blocks = np.concatenate([begins // BLOCK, (begins + self._row_bytes - 1) // BLOCK])
            self._file.check(blocks)


class SharedRows:
    """Vectors that several words share: the row of each word in a smaller matrix."""

    def __init__(self, matrix: MappedMatrix, row_of_word: Ints) -> None:
        self._matrix, self._row_of_word = matrix, row_of_word

    def take(self, rows: Ints) -> Floats:
        """Return a copy of the vectors of some words."""
        return self._matrix.take(self._row_of_word[rows])


def _digest(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
