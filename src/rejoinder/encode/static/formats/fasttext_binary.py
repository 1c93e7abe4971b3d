"""Binary models of fastText: words, and the buckets of n-grams that compose unknown words.

The layout is that of ``FastText::saveModel``, versions 11 and 12: settings, dictionary, input
matrix. The output matrix behind them is needed only to continue training. A word's vector is the
mean over its own row and the rows of its n-grams; that of ``</s>`` is its own row.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np

from rejoinder.encode.static.char_ngrams import NgramComposer
from rejoinder.encode.static.formats.source import Source, read_exactly
from rejoinder.encode.static.formats.text import MAX_DIMENSIONS
from rejoinder.encode.static.mapped_files import MappedMatrix, Part
from rejoinder.encode.static.vectors_folder import SUBWORDS, Batch, FolderWriter
from rejoinder.encode.static.vectors_manifest import MAX_NGRAM, Subwords
from rejoinder.encode.static.word_vectors import Floats
from rejoinder.errors import DataError

MAGIC = struct.pack("<i", 793712314)
VERSIONS = (11, 12)
SUPERVISED = 3
END_OF_SENTENCE = b"</s>"
MAX_WORD_BYTES = 2**16
BATCH_ROWS = 8192
"""Words or buckets that are read together."""


class _Settings(NamedTuple):
    dimensions: int
    window: int
    epochs: int
    min_count: int
    negatives: int
    word_ngrams: int
    loss: int
    model: int
    buckets: int
    min_n: int
    max_n: int
    update_rate: int
    sampling: float


def read_fasttext_binary(source: Source, writer: FolderWriter) -> dict[str, Any]:
    """Read a binary model into a folder."""
    with source.open() as stream:
        return _Model(source, stream).convert(writer)


class _Model:
    """A file, read from its start to the end of the input matrix."""

    def __init__(self, source: Source, stream: IO[bytes]) -> None:
        self._source, self._stream = source, stream

    def convert(self, writer: FolderWriter) -> dict[str, Any]:
        """Write the vectors into a folder."""
        settings = self._settings()
        words = self._words()
        rows = self._matrix_rows(settings)
        buckets = rows - len(words)
        composed = settings.max_n > 0 and buckets > 0
        if composed and buckets != settings.buckets:
            raise self._damaged("its matrix does not fit its settings")
        first = self._stream.tell()
        ngrams = None
        if composed:
            shape = Subwords(max(1, settings.min_n), settings.max_n, buckets)
            self._seek_row(first, len(words), settings.dimensions)
            writer.add_subwords(shape, self._blocks(buckets, settings.dimensions))
            path = writer.folder / SUBWORDS
            matrix = MappedMatrix(path, Part.of(path), buckets, settings.dimensions)
            ngrams = NgramComposer(matrix, shape.min_n, shape.max_n)
        self._seek_row(first, 0, settings.dimensions)
        done = 0
        for own in self._blocks(len(words), settings.dimensions):
            batch = words[done : done + len(own)]
            writer.add(Batch(batch, own if ngrams is None else _with_ngrams(ngrams, batch, own)))
            done += len(own)
        return {"source_format": "fastText binary"}

    def _settings(self) -> _Settings:
        _, version = self._unpack("<2i")
        if version not in VERSIONS:
            raise self._source.wrong(f"the model has version {version}; expected 11 or 12")
        settings = _Settings(*self._unpack("<12id"))
        if not 0 < settings.dimensions <= MAX_DIMENSIONS:
            raise self._damaged(f"it says {settings.dimensions} dimensions")
        if version == 11 and settings.model == SUPERVISED:
            settings = settings._replace(max_n=0)
        if settings.max_n > 0 and not 0 <= settings.min_n <= settings.max_n <= MAX_NGRAM:
            raise self._damaged(f"n-grams of {settings.min_n} to {settings.max_n} characters")
        return settings

    def _words(self) -> list[bytes]:
        """Return the dictionary without the labels of a classifier, which follow the words."""
        size, words, labels, _, pruned = self._unpack("<3i2q")
        if min(size, words, labels) < 0 or words + labels != size:
            raise self._damaged("the size of its dictionary is wrong")
        if pruned > 0:
            raise self._quantised()
        dictionary = []
        data, place = b"", 0
        for number in range(size):
            end = data.find(b"\0", place)
            while end < 0 or end + 10 > len(data):
                more = self._stream.read(2**20)
                if not more or len(data) - place > MAX_WORD_BYTES:
                    raise self._damaged(f"it ends within word {number + 1} of {size}")
                data, place = data[place:] + more, 0
                end = data.find(b"\0")
            if data[end + 9] == 0:
                dictionary.append(data[place:end])
            place = end + 10  # after the zero a count of 8 bytes and the kind of entry
        self._stream.seek(place - len(data), 1)
        if len(dictionary) != words:
            raise self._damaged(f"{len(dictionary)} words in a dictionary of {words}")
        return dictionary

    def _matrix_rows(self, settings: _Settings) -> int:
        """Return the rows of the input matrix, and advance to its first number."""
        (quantised,) = self._unpack("<?")
        if quantised:
            raise self._quantised()
        rows, columns = self._unpack("<2q")
        if columns != settings.dimensions:
            raise self._damaged(f"{columns} columns for {settings.dimensions} dimensions")
        if rows < 0:
            raise self._damaged(f"{rows} rows")
        return int(rows)

    def _seek_row(self, first: int, row: int, dimensions: int) -> None:
        self._stream.seek(first + 4 * row * dimensions)

    def _blocks(self, rows: int, dimensions: int) -> Iterator[Floats]:
        for start in range(0, rows, BATCH_ROWS):
            count = min(BATCH_ROWS, rows - start)
            data = read_exactly(self._stream, 4 * count * dimensions)
            if data is None:
                raise self._damaged("it ends within its matrix")
            yield np.frombuffer(data, "<f4").reshape(count, dimensions)

    def _unpack(self, layout: str) -> tuple[Any, ...]:
        data = read_exactly(self._stream, struct.calcsize(layout))
        if data is None:
            raise self._damaged("it ends within its settings")
        return struct.unpack(layout, data)

    def _damaged(self, how: str) -> DataError:
        return self._source.wrong(f"the fastText model is cut off or damaged: {how}")

    def _quantised(self) -> DataError:
        return self._source.wrong(
            "the fastText model is quantised (.ftz); give the full model (.bin) or its .vec"
        )


def _with_ngrams(ngrams: NgramComposer, words: list[bytes], own: Floats) -> Floats:
    """Return the means over the words' own rows and their n-grams."""
    rows = ngrams.mean_with_rows(words, own)
    if END_OF_SENTENCE in words:
        place = words.index(END_OF_SENTENCE)
        rows[place] = own[place]
    return rows
