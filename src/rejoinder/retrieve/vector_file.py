"""Store the vectors of a pool in a file that is written batch by batch and read block by block.

The file is a plain .npy of float32 with one row for each pair. An interrupted run resumes from the
rows that are there. Blocks are read into the same few megabytes, not mapped, so memory does not
grow with the pool; the next block is read ahead in a thread.
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

Vectors = NDArray[np.float32]
Encode = Callable[[list[str], Progress | None], Vectors]


def _header(rows: int, dimensions: int) -> bytes:
    stream = io.BytesIO()
    shape = {"descr": "<f4", "fortran_order": False, "shape": (rows, dimensions)}
    np.lib.format.write_array_header_1_0(stream, shape)
    return stream.getvalue()


def write_vectors(
    path: Path,
    shape: tuple[int, int],
    texts_from: Callable[[int], Iterator[list[str]]],
    batch_rows: int,
    encode: Encode,
    on_progress: Progress | None = None,
) -> None:
    """Encode texts into a file; ``texts_from(row)`` yields batches of ``batch_rows`` texts.

    Whole batches that an earlier run wrote are kept.
    """
    rows, dimensions = shape
    header, stride = _header(rows, dimensions), 4 * dimensions
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
            file.write(np.ascontiguousarray(vectors, "<f4").data)
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
        self.mapped: Vectors = np.asarray(
            read_array(path, dtype="float32", shape=(size, None), mmap=True)
        )
        """For looking up single rows: each takes a page of memory."""
        self.size, self.dimensions = self.mapped.shape
        self._offset = path.stat().st_size - 4 * self.size * self.dimensions

    def read(self, first: int, out: Vectors) -> None:
        """Fill ``out`` with the rows from ``first`` on."""
        with open(self.path, "rb", buffering=0) as file:
            file.seek(self._offset + 4 * self.dimensions * first)
            view = out.reshape(-1).view(np.uint8).data
            while view:
                count = file.readinto(view)
                if not count:
                    raise DataError("ends too early", path=str(self.path))
                view = view[count:]
        if not np.isfinite(out.sum()):  # a sum is finite only if all vectors are
            raise DataError("holds a value that is not a finite number", path=str(self.path))


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
