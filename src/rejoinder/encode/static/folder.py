"""Writing a folder of word vectors, a batch at a time, and opening it.

    manifest.json   what is in the folder, with digests; written last
    vectors.npy     float32, a row a word
    words.txt       the words in UTF-8, a line each; \\n and \\\\ stand for a line break and \\
    starts.npy      where each line begins
    counts.npy      how often each word stood in the texts (vectors that were trained here)
    hashes.npy      hashes of the words in order; order.npy: the row of each
    subwords.npy    float32, a row for each bucket of n-grams (fastText only)

The folder is written under a hidden name and renamed when it is whole.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.static.blocks import Mapped, MappedMatrix, Part
from rejoinder.encode.static.index import WordIndex, Words, escaped, sorted_hashes
from rejoinder.encode.static.manifest import Manifest, Subwords, is_vectors_folder
from rejoinder.encode.static.ngrams import Ngrams
from rejoinder.encode.static.vectors import Floats, WordVectors
from rejoinder.errors import DataError, UsageError

VECTORS, SUBWORDS = "vectors.npy", "subwords.npy"
WORDS, STARTS, HASHES, ORDER = "words.txt", "starts.npy", "hashes.npy", "order.npy"
COUNTS = "counts.npy"

HEADER = 128
"""Bytes before the first row: enough for any shape, and a multiple of the alignment."""


class Batch(NamedTuple):
    """Some words of a source with their vectors."""

    words: Sequence[bytes]
    rows: Floats
    places: Sequence[int] | None = None
    """The lines where they stand, in a file that has lines."""


class FolderWriter:
    """Takes batches; what is wrong with them is complained about in terms of the source."""

    def __init__(self, folder: Path, source: str) -> None:
        self.folder, self._source = folder, source
        self._dimensions: int | None = None
        self._seen: set[bytes] = set()
        self._lines: list[bytes] = []
        self._taken = 0
        self._rows = (folder / VECTORS).open("wb")
        self.subwords: Subwords | None = None
        self.oddities = {"repeated_words": 0, "empty_words": 0, "words_not_utf8": 0}

    def add(self, batch: Batch) -> None:
        """The first vector of a word counts; words that are empty are left out."""
        rows = np.ascontiguousarray(batch.rows, "<f4")
        if self._dimensions is None:
            self._dimensions = rows.shape[1]
            self._rows.write(_npy_header(0, self._dimensions))
        self._check_finite(batch, rows)
        kept = [i for i, word in enumerate(batch.words) if self._is_new(word)]
        self._lines += [escaped(batch.words[i]) for i in kept]
        self._rows.write((rows if len(kept) == len(rows) else rows[kept]).data)
        self._taken += len(rows)

    def add_subwords(self, settings: Subwords, blocks: Iterator[Floats]) -> None:
        """The n-grams' vectors, a row a bucket."""
        self.subwords = settings
        with (self.folder / SUBWORDS).open("wb") as stream:
            for number, block in enumerate(blocks):
                if number == 0:
                    stream.write(_npy_header(settings.buckets, block.shape[1]))
                if not np.isfinite(block).all():
                    raise DataError("the vector of an n-gram is not finite", path=self._source)
                stream.write(np.ascontiguousarray(block, "<f4").data)

    def add_counts(self, counts: NDArray[np.int64]) -> None:
        """How often each word stood in the texts, in the order of the words."""
        np.save(self.folder / COUNTS, counts.astype("<i8"), allow_pickle=False)

    def finish(self, origin: dict[str, Any]) -> Manifest:
        if self._dimensions is None or not self._lines:
            raise DataError("there is no word with a vector in it", path=self._source)
        self._rows.seek(0)
        self._rows.write(_npy_header(len(self._lines), self._dimensions))
        self._rows.close()
        self._write_words()
        names = sorted(path.name for path in self.folder.iterdir())
        parts = {name: Part.of(self.folder / name) for name in names}
        oddities = {key: count for key, count in self.oddities.items() if count}
        manifest = Manifest.new(
            len(self._lines), self._dimensions, self.subwords, {**origin, **oddities}, parts
        )
        manifest.write(self.folder)
        return manifest

    def close(self) -> None:
        self._rows.close()

    def _is_new(self, word: bytes) -> bool:
        if not word:
            self.oddities["empty_words"] += 1
            return False
        if word in self._seen:
            self.oddities["repeated_words"] += 1
            return False
        self._seen.add(word)
        if not word.isascii():
            try:
                word.decode()
            except UnicodeDecodeError:
                self.oddities["words_not_utf8"] += 1
        return True

    def _check_finite(self, batch: Batch, rows: Floats) -> None:
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if bad.size:
            word = batch.words[bad[0]].decode("utf-8", "replace")
            what = f"a number of '{word}' is NaN, infinite or beyond the range of float32"
            if batch.places is None:
                raise DataError(f"word {self._taken + int(bad[0]) + 1}: {what}", path=self._source)
            raise DataError(what, path=self._source, line=batch.places[bad[0]])

    def _write_words(self) -> None:
        lengths = np.fromiter(map(len, self._lines), np.int64, len(self._lines))
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths + 1)])
        hashes, order = sorted_hashes(self._lines)
        with (self.folder / WORDS).open("wb") as stream:
            stream.write(b"\n".join(self._lines) + b"\n")
        for name, array in ((STARTS, starts), (HASHES, hashes), (ORDER, order)):
            np.save(self.folder / name, array, allow_pickle=False)


@contextlib.contextmanager
def new_folder(target: Path, source: str) -> Iterator[FolderWriter]:
    """A writer whose folder appears as ``target``, whole, when the block ends, or not at all.

    The block calls ``finish``. A folder of word vectors that is there already is replaced.
    """
    check_target(target)
    target = target.resolve()
    hidden = target.with_name(f".{target.name[:40]}.{os.getpid()}.part")
    try:
        shutil.rmtree(hidden, ignore_errors=True)
        hidden.mkdir()
    except OSError as error:
        raise _unwritable(target, error) from None
    writer = None
    try:
        writer = FolderWriter(hidden, source)
        yield writer
        writer.close()
        _put_in_place(hidden, target)
    except OSError as error:
        raise _unwritable(target, error) from None
    finally:
        if writer is not None:
            writer.close()
        shutil.rmtree(hidden, ignore_errors=True)


def check_target(target: Path) -> None:
    """Refuse, before any work, to overwrite anything but word vectors."""
    if target.is_dir():
        if any(target.iterdir()) and not is_vectors_folder(target):
            raise UsageError(f"{target}: is a folder with other things; choose another name")
    elif target.exists():
        raise UsageError(f"{target}: is a file; word vectors are written as a folder")
    elif not target.resolve().parent.is_dir():
        raise UsageError(f"{target}: cannot be written: there is no folder {target.parent}")


def open_folder(folder: Path, name: str | None = None) -> WordVectors:
    """Map a folder; only its small parts are read."""
    manifest = Manifest.read(folder)
    count, dimensions = manifest.words, manifest.dimensions
    parts = manifest.parts
    needed = [VECTORS, WORDS, STARTS, HASHES, ORDER] + [SUBWORDS] * bool(manifest.subwords)
    if missing := [part for part in needed if part not in parts]:
        raise DataError(f"the manifest names no {missing[0]}", path=str(folder))
    table = MappedMatrix(folder / VECTORS, parts[VECTORS], count, dimensions)
    text = Mapped(folder / WORDS, parts[WORDS]).text

    def small(file: str, dtype: type[np.generic], size: int) -> NDArray[Any]:
        mapped = Mapped(folder / file, parts[file])
        mapped.check()
        return mapped.array(dtype, (size,))

    words = Words(text, small(STARTS, np.int64, count + 1))
    index = WordIndex(words, small(HASHES, np.uint64, count), small(ORDER, np.int32, count))
    pieces = None
    if (settings := manifest.subwords) is not None:
        path = folder / SUBWORDS
        matrix = MappedMatrix(path, parts[SUBWORDS], settings.buckets, dimensions)
        pieces = Ngrams(matrix, settings.shortest, settings.longest)
    counts = small(COUNTS, np.int64, count) if COUNTS in parts else None
    return WordVectors(
        name or str(folder), manifest.digest, dimensions, words, index, table, pieces, counts
    )


def _npy_header(rows: int, dimensions: int) -> bytes:
    """The head of an .npy file of float32, always of the same length: it can be written anew."""
    shape = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {dimensions}), }}"
    text = shape.encode().ljust(HEADER - 11) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def _put_in_place(hidden: Path, target: Path) -> None:
    if not target.exists():
        os.rename(hidden, target)
        return
    # two renames: between them there is no folder, but never half of one
    old = hidden.with_suffix(".old")
    shutil.rmtree(old, ignore_errors=True)
    os.rename(target, old)
    os.rename(hidden, target)
    shutil.rmtree(old, ignore_errors=True)


def _unwritable(target: Path, error: OSError) -> UsageError:
    return UsageError(f"{target}: cannot be written: {(error.strerror or str(error)).lower()}")
