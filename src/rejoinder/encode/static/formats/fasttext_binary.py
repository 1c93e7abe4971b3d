"""fastText's binary model: words, and the buckets of character n-grams that compose unknown ones.

The layout is that of ``FastText::saveModel``, versions 11 and 12: settings, dictionary, input
matrix. What follows (the output matrix) is needed only to go on training. A word's vector is the
mean over its own row and the rows of its n-grams; that of ``</s>`` is its own row.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np

from rejoinder.encode.static.blocks import MappedMatrix, Part
from rejoinder.encode.static.folder import SUBWORDS, Batch, FolderWriter
from rejoinder.encode.static.formats.source import Source, read_exactly
from rejoinder.encode.static.formats.text import MOST_DIMENSIONS
from rejoinder.encode.static.manifest import Subwords
from rejoinder.encode.static.ngrams import Ngrams
from rejoinder.encode.static.vectors import Floats
from rejoinder.errors import DataError

MAGIC = struct.pack("<i", 793712314)
VERSIONS = (11, 12)
SUPERVISED = 3
END_OF_SENTENCE = b"</s>"
AT_ONCE = 8192
"""Words or buckets handled together."""


class _Settings(NamedTuple):
    dimensions: int
    window: int
    epochs: int
    fewest: int
    negatives: int
    word_ngrams: int
    loss: int
    model: int
    buckets: int
    shortest: int
    longest: int
    update_rate: int
    sampling: float


def read_fasttext_binary(source: Source, writer: FolderWriter) -> dict[str, Any]:
    with source.open() as stream:
        return _Model(source, stream).convert(writer)


class _Model:
    """One file, read from its start to the end of the input matrix."""

    def __init__(self, source: Source, stream: IO[bytes]) -> None:
        self._source, self._stream = source, stream

    def convert(self, writer: FolderWriter) -> dict[str, Any]:
        settings = self._settings()
        words = self._words()
        rows = self._matrix_rows(settings)
        buckets = rows - len(words)
        composed = settings.longest > 0 and buckets > 0
        if composed and buckets != settings.buckets:
            raise self._damaged("its matrix does not fit its settings")
        first = self._stream.tell()
        ngrams = None
        if composed:
            shape = Subwords(settings.shortest, settings.longest, buckets)
            self._seek_row(first, len(words), settings.dimensions)
            writer.add_subwords(shape, self._blocks(buckets, settings.dimensions))
            path = writer.folder / SUBWORDS
            matrix = MappedMatrix(path, Part.of(path), buckets, settings.dimensions)
            ngrams = Ngrams(matrix, settings.shortest, settings.longest)
        self._seek_row(first, 0, settings.dimensions)
        done = 0
        for own in self._blocks(len(words), settings.dimensions):
            some = words[done : done + len(own)]
            writer.add(Batch(some, own if ngrams is None else _mixed(ngrams, some, own)))
            done += len(own)
        return {"source_format": "fastText binary"}

    def _settings(self) -> _Settings:
        _, version = self._unpack("<2i")
        if version not in VERSIONS:
            raise self._source.wrong(f"the model has version {version}; expected 11 or 12")
        settings = _Settings(*self._unpack("<12id"))
        if not 0 < settings.dimensions <= MOST_DIMENSIONS:
            raise self._damaged(f"it says {settings.dimensions} dimensions")
        if version == 11 and settings.model == SUPERVISED:
            settings = settings._replace(longest=0)
        return settings

    def _words(self) -> list[bytes]:
        """The dictionary; labels of a classifier stand after the words and are left out."""
        size, words, labels, _, pruned = self._unpack("<3i2q")
        if min(size, words, labels) < 0 or words + labels != size:
            raise self._damaged("its dictionary has no sound size")
        if pruned > 0:
            raise self._quantised()
        found = []
        data, place = b"", 0
        for number in range(size):
            end = data.find(b"\0", place)
            while end < 0 or end + 10 > len(data):
                more = self._stream.read(2**20)
                if not more:
                    raise self._damaged(f"it ends within word {number + 1} of {size}")
                data, place = data[place:] + more, 0
                end = data.find(b"\0")
            if data[end + 9] == 0:
                found.append(data[place:end])
            place = end + 10  # after the zero a count of 8 bytes and the kind of entry
        self._stream.seek(place - len(data), 1)
        if len(found) != words:
            raise self._damaged(f"{len(found)} words in a dictionary of {words}")
        return found

    def _matrix_rows(self, settings: _Settings) -> int:
        """Stands before the numbers of the input matrix afterwards."""
        (quantised,) = self._unpack("<?")
        if quantised:
            raise self._quantised()
        rows, columns = self._unpack("<2q")
        if columns != settings.dimensions:
            raise self._damaged(f"{columns} columns for {settings.dimensions} dimensions")
        return int(rows)

    def _seek_row(self, first: int, row: int, dimensions: int) -> None:
        self._stream.seek(first + 4 * row * dimensions)

    def _blocks(self, rows: int, dimensions: int) -> Iterator[Floats]:
        for start in range(0, rows, AT_ONCE):
            count = min(AT_ONCE, rows - start)
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


def _mixed(ngrams: Ngrams, words: list[bytes], own: Floats) -> Floats:
    rows = ngrams.mix_into(words, own)
    if END_OF_SENTENCE in words:
        place = words.index(END_OF_SENTENCE)
        rows[place] = own[place]
    return rows
