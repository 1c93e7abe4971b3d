"""Write a folder of word vectors, a batch at a time, and open it.

    manifest.json   content, origin and digests; written last
    vectors.npy     float32, a row for each word
    rows.npy        the row of each word, if words share their vectors
    words.txt       the words in UTF-8, a line each; \\n and \\\\ stand for a line break and \\
    starts.npy      where each line begins
    counts.npy      how often each word occurs in the texts (vectors that were trained here)
    hashes.npy      sorted hashes of the words; order.npy: the row of each
    subwords.npy    float32, a row for each bucket of n-grams (fastText only)

The folder is written under a hidden name and renamed when it is complete.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.static.base_forms import BaseForms
from rejoinder.encode.static.char_ngrams import NgramComposer
from rejoinder.encode.static.mapped_files import (
    REMEDY,
    MappedFile,
    MappedMatrix,
    Part,
    SharedRows,
)
from rejoinder.encode.static.vectors_manifest import Subwords, VectorsManifest, is_vectors_folder
from rejoinder.encode.static.word_index import WordIndex, Words, escape, sorted_hashes
from rejoinder.encode.static.word_vectors import Composer, Floats, Table, WordVectors
from rejoinder.errors import DataError
from rejoinder.files.checked import check_values, inside
from rejoinder.files.output import whole_folder
from rejoinder.files.paths import check_new_folder

VECTORS, SUBWORDS = "vectors.npy", "subwords.npy"
WORDS, STARTS, HASHES, ORDER = "words.txt", "starts.npy", "hashes.npy", "order.npy"
COUNTS, ROWS = "counts.npy", "rows.npy"

HEADER = 128
"""Bytes before the first row: enough for any shape, and a multiple of the alignment."""


class Batch(NamedTuple):
    """Some words of a source with their vectors."""

    words: Sequence[bytes]
    rows: Floats
    lines: Sequence[int] | None = None
    """The line of each word, in a file that has lines."""


class FolderWriter:
    """Writes batches into a folder; errors name the source of the vectors."""

    def __init__(self, folder: Path, source: str) -> None:
        self.folder, self._source = folder, source
        self._dimensions: int | None = None
        self._words: set[bytes] = set()
        self._lines: list[bytes] = []
        self._received = 0
        self._rows = (folder / VECTORS).open("wb")
        self._shared: int | None = None
        self.subwords: Subwords | None = None
        self.oddities = {"repeated_words": 0, "empty_words": 0, "words_not_utf8": 0}

    def add(self, batch: Batch) -> None:
        """Add words; only the first vector of a word is kept, and empty words are left out."""
        rows = np.ascontiguousarray(batch.rows, "<f4")
        if self._dimensions is None:
            self._dimensions = rows.shape[1]
            self._rows.write(_npy_header(0, self._dimensions))
        self._check_finite(batch, rows)
        kept = [i for i, word in enumerate(batch.words) if self._is_new(word)]
        self._lines += [escape(batch.words[i]) for i in kept]
        self._rows.write((rows if len(kept) == len(rows) else rows[kept]).data)
        self._received += len(rows)

    @property
    def words(self) -> int:
        """The number of words so far."""
        return len(self._lines)

    def add_shared(self, words: Sequence[bytes], numbers: Sequence[int], vectors: Floats) -> None:
        """Add all words at once; ``numbers`` says which of the vectors each of them has."""
        if not np.isfinite(vectors).all():
            raise DataError("a vector is not finite", path=self._source)
        self._dimensions, self._shared = vectors.shape[1], len(vectors)
        self._rows.write(_npy_header(*vectors.shape))
        self._rows.write(np.ascontiguousarray(vectors, "<f4").data)
        kept = [i for i, word in enumerate(words) if self._is_new(word)]
        self._lines += [escape(words[i]) for i in kept]
        rows = np.array([numbers[i] for i in kept], np.int64)
        np.save(self.folder / ROWS, rows, allow_pickle=False)

    def add_subwords(self, settings: Subwords, blocks: Iterator[Floats]) -> None:
        """Add the vectors of the n-grams, a row for each bucket."""
        self.subwords = settings
        with (self.folder / SUBWORDS).open("wb") as stream:
            for number, block in enumerate(blocks):
                if number == 0:
                    stream.write(_npy_header(settings.buckets, block.shape[1]))
                if not np.isfinite(block).all():
                    raise DataError("the vector of an n-gram is not finite", path=self._source)
                stream.write(np.ascontiguousarray(block, "<f4").data)

    def add_counts(self, counts: NDArray[np.int64]) -> None:
        """Add how often each word occurs in the texts, in the order of the words."""
        np.save(self.folder / COUNTS, counts.astype("<i8"), allow_pickle=False)

    def finish(
        self, origin: dict[str, Any], languages: Collection[str] = (), base_forms: bool = False
    ) -> VectorsManifest:
        """Write the index of the words and the manifest."""
        if self._dimensions is None or not self._lines:
            raise DataError("there is no word with a vector in it", path=self._source)
        self._rows.seek(0)
        count = len(self._lines) if self._shared is None else self._shared
        self._rows.write(_npy_header(count, self._dimensions))
        self._rows.close()
        self._write_words()
        names = sorted(path.name for path in self.folder.iterdir())
        parts = {name: Part.of(self.folder / name) for name in names}
        oddities = {key: count for key, count in self.oddities.items() if count}
        manifest = VectorsManifest.new(
            len(self._lines),
            self._dimensions,
            self.subwords,
            {**origin, **oddities},
            parts,
            languages,
            self._shared,
            base_forms,
        )
        manifest.write(self.folder)
        return manifest

    def close(self) -> None:
        """Close the file of vectors."""
        self._rows.close()

    def _is_new(self, word: bytes) -> bool:
        if not word:
            self.oddities["empty_words"] += 1
            return False
        if word in self._words:
            self.oddities["repeated_words"] += 1
            return False
        self._words.add(word)
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
            message = f"a number of '{word}' is NaN, infinite or beyond the range of float32"
            if batch.lines is None:
                number = self._received + int(bad[0]) + 1
                raise DataError(f"word {number}: {message}", path=self._source)
            raise DataError(message, path=self._source, line=batch.lines[bad[0]])

    def _write_words(self) -> None:
        lengths = np.fromiter(map(len, self._lines), np.int64, len(self._lines))
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths + 1)])
        hashes, order = sorted_hashes(self._lines)
        with (self.folder / WORDS).open("wb") as stream:
            stream.write(b"\n".join(self._lines) + b"\n")
        for name, array in ((STARTS, starts), (HASHES, hashes), (ORDER, order)):
            np.save(self.folder / name, array, allow_pickle=False)


@contextlib.contextmanager
def new_vectors_folder(target: Path, source: str) -> Iterator[FolderWriter]:
    """Yield a writer whose folder appears as ``target``, complete, when the block ends.

    The block must call ``finish``. A folder of word vectors that is already there is replaced.
    """
    check_vectors_target(target)
    with whole_folder(target) as hidden:
        writer = FolderWriter(hidden, source)
        try:
            yield writer
        finally:
            writer.close()


def check_vectors_target(target: Path) -> None:
    """Refuse, before any work, to overwrite anything but word vectors."""
    check_new_folder(target, may_replace=is_vectors_folder)


def open_vectors_folder(folder: Path, name: str | None = None) -> WordVectors:
    """Open a folder of word vectors; only its small files are read, the others are mapped."""
    manifest = VectorsManifest.read(folder)
    count, dimensions = manifest.words, manifest.dimensions

    def mapped(file: str) -> tuple[Path, Part]:
        if file not in manifest.parts:
            raise DataError(f"the manifest lists no {file}", path=str(folder))
        return inside(folder, file), manifest.parts[file]

    def small_array(file: str, dtype: str, size: int, **limits: int) -> NDArray[Any]:
        opened = MappedFile(*mapped(file))
        opened.check()
        array = opened.array(dtype, (size,))
        check_values(opened.path, array, low=limits.get("low"), high=limits.get("high"))
        return array

    matrix = MappedMatrix(*mapped(VECTORS), manifest.rows or count, dimensions)
    table: Table = matrix
    if manifest.rows is not None:
        table = SharedRows(matrix, small_array(ROWS, "int64", count, low=0, high=manifest.rows - 1))
    text = MappedFile(*mapped(WORDS)).content
    starts = small_array(STARTS, "int64", count + 1, low=0, high=len(text))
    if (np.diff(starts) < 1).any():
        raise DataError(
            f"the starts of the words do not ascend; {REMEDY}", path=str(folder / STARTS)
        )
    order = small_array(ORDER, "int32", count, low=0, high=count - 1)
    words = Words(text, starts)
    index = WordIndex(words, small_array(HASHES, "uint64", count), order)
    composer: Composer | None = BaseForms(index, table, dimensions) if manifest.base_forms else None
    if (settings := manifest.subwords) is not None:
        buckets = MappedMatrix(*mapped(SUBWORDS), settings.buckets, dimensions)
        composer = NgramComposer(buckets, settings.min_n, settings.max_n)
    counts = small_array(COUNTS, "int64", count, low=0) if COUNTS in manifest.parts else None
    return WordVectors(
        name=name or str(folder),
        digest=manifest.digest,
        dimensions=dimensions,
        words=words,
        index=index,
        table=table,
        composer=composer,
        counts=counts,
        languages=frozenset(manifest.languages) or None,
    )


def _npy_header(rows: int, dimensions: int) -> bytes:
    """Return the header of a float32 .npy file, always of the same length, to be overwritten."""
    shape = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {dimensions}), }}"
    text = shape.encode().ljust(HEADER - 11) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
