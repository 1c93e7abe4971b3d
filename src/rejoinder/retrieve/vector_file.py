"""Store the vectors of a pool in a file that is written batch by batch and read block by block.

The file is a plain .npy with one row for each pair, in one of the precisions of
:mod:`rejoinder.retrieve.precision`. An interrupted run resumes from the rows that are there. Blocks
are read into the same few megabytes, not mapped, so memory does not grow with the pool; the next
block is read ahead in a thread.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.files.checked import read_array
from rejoinder.progress import Progress, part_of
from rejoinder.retrieve.precision import PRECISIONS, Precision, precision_of

Vectors = NDArray[np.float32]
Encode = Callable[[list[str], Progress | None], Vectors]


DTYPES = tuple(str(np.dtype(each.dtype)) for each in PRECISIONS.values())


def _header(rows: int, columns: int, precision: Precision) -> bytes:
    stream = io.BytesIO()
    descr = np.lib.format.dtype_to_descr(np.dtype(precision.dtype))
    shape = {"descr": descr, "fortran_order": False, "shape": (rows, columns)}
    np.lib.format.write_array_header_1_0(stream, shape)
    return stream.getvalue()


def write_vectors(
    path: Path,
    shape: tuple[int, int],
    texts_from: Callable[[int], Iterator[list[str]]],
    batch_rows: int,
    encode: Encode,
    on_progress: Progress | None = None,
    precision: Precision = PRECISIONS["float32"],
) -> None:
    """Encode texts into a file; ``texts_from(row)`` yields batches of ``batch_rows`` texts.

    Whole batches that an earlier run wrote are kept.
    """
    rows, dimensions = shape
    columns = dimensions + precision.extra
    header, stride = _header(rows, columns, precision), precision.bytes * columns
    with open(path, "a+b") as file:
        file.seek(0)
        begun = file.read(len(header)) == header
        done = (file.seek(0, io.SEEK_END) - len(header)) // stride if begun else 0
        done = rows if done >= rows else done // batch_rows * batch_rows
        file.truncate(len(header) + done * stride if begun else 0)
        if not begun:
            file.write(header)
        if done == rows:
            return
        for texts in texts_from(done):
            vectors = encode(texts, part_of(on_progress, done, rows))
            file.write(precision.pack(vectors).data)
            file.flush()
            done += len(texts)
            if on_progress:
                on_progress(done, rows)


class VectorFile:
    """Rows of vectors, read in blocks or looked up one by one.

    ``size`` is the number of rows that the file must have.
    """

    def __init__(self, path: Path, size: int | None = None) -> None:
        self.path = path
        self._mapped = read_array(path, dtype=DTYPES, shape=(size, None), mmap=True)
        self.precision = precision_of(self._mapped.dtype)
        self.size, columns = self._mapped.shape
        self.dimensions = columns - self.precision.extra
        self._stride = self.precision.bytes * columns
        self._offset = path.stat().st_size - self._stride * self.size
        if self.dimensions < 1:
            raise DataError("has rows without a vector", path=str(path))

    def rows(self, numbers: Sequence[int] | NDArray[np.integer]) -> Vectors:
        """Return some rows; each takes a page of memory."""
        return self._finite(self.precision.unpack(np.asarray(self._mapped[numbers])))

    def read(self, first: int, out: Vectors) -> None:
        """Fill ``out`` with the rows from ``first`` on."""
        plain = self.precision.name == "float32"
        stored = out if plain else np.empty((len(out), self._mapped.shape[1]), self._mapped.dtype)
        with open(self.path, "rb", buffering=0) as file:
            file.seek(self._offset + self._stride * first)
            view = stored.reshape(-1).view(np.uint8).data
            while view:
                count = file.readinto(view)
                if not count:
                    raise DataError("ends too early", path=str(self.path))
                view = view[count:]
        if not plain:
            out[:] = self.precision.unpack(stored)
        self._finite(out)

    def _finite(self, vectors: Vectors) -> Vectors:
        if not np.isfinite(vectors.sum()):  # a sum is finite only if all vectors are
            raise DataError("holds a value that is not a finite number", path=str(self.path))
        return vectors


def blocks(
    files: Sequence[VectorFile], rows: range, size: int
) -> Iterator[tuple[int, list[Vectors]]]:
    """Yield blocks of ``size`` rows of several files, each with the number of its first row.

    The arrays of a block are overwritten when the next but one is requested.
    """
    buffers = [
        [np.empty((min(size, len(rows)), file.dimensions), np.float32) for file in files]
        for _ in range(2)
    ]

    def load(first: int, buffers: list[Vectors]) -> list[Vectors]:
        count = min(size, rows.stop - first)
        filled = [buffer[:count] for buffer in buffers]
        for file, buffer in zip(files, filled, strict=True):
            file.read(first, buffer)
        return filled

    firsts = range(rows.start, rows.stop, size)
    with ThreadPoolExecutor(1) as reader:
        pending = reader.submit(load, firsts[0], buffers[0]) if firsts else None
        for number, first in enumerate(firsts):
            assert pending is not None
            ready = pending.result()
            if number + 1 < len(firsts):
                pending = reader.submit(load, firsts[number + 1], buffers[(number + 1) % 2])
            yield first, ready
