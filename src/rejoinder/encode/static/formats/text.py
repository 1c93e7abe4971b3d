"""Text: a word and its numbers a line; with a header (word2vec, fastText) or without (GloVe).

Most lines are of one plain shape, and they are read together as JSON numbers, which is several
times faster than one by one. A batch with anything odd in it is read again carefully, a line at a
time, so that the complaint names the line.
"""

from __future__ import annotations

import codecs
from typing import IO, Any

import msgspec
import numpy as np

from rejoinder.encode.static.folder import Batch, FolderWriter
from rejoinder.encode.static.formats.source import Source
from rejoinder.encode.static.vectors import Floats

AT_ONCE = 2**22
"""Bytes of lines that make a batch."""
MOST_DIMENSIONS = 2**16
_DECODER = msgspec.json.Decoder(list[float])


def is_row(line: bytes) -> bool:
    """Whether a line is a word with numbers."""
    _, *values = _fields(line.removeprefix(codecs.BOM_UTF8)) or [b""]
    return bool(values) and all(map(_is_number, values))


def read_glove_text(source: Source, writer: FolderWriter) -> dict[str, Any]:
    with source.open() as stream:
        first = stream.readline().removeprefix(codecs.BOM_UTF8)
        dimensions = len(_fields(first)) - 1
        _Rows(source, dimensions, "as in the first line").read(stream, writer, [first], 1)
    return {"source_format": "GloVe text"}


def read_word2vec_text(source: Source, writer: FolderWriter) -> dict[str, Any]:
    with source.open() as stream:
        count, dimensions = read_header(source, stream)
        rows = _Rows(source, dimensions, "as the header says")
        rows.read(stream, writer, [], 2)
    if rows.count != count:
        raise source.wrong(
            f"the header says {count} words, the file has {rows.count}: it is cut off or damaged",
            line=1,
        )
    return {"source_format": "word2vec text"}


def read_header(source: Source, stream: IO[bytes]) -> tuple[int, int]:
    """Number of words and dimensions, from the first line."""
    line = stream.readline(200).removeprefix(codecs.BOM_UTF8)
    count, dimensions = (int(field) for field in line.split())
    if not 0 < dimensions <= MOST_DIMENSIONS:
        raise source.wrong(
            f"the header says {dimensions} dimensions; expected 1 to {MOST_DIMENSIONS}", line=1
        )
    return count, dimensions


class _Rows:
    """The lines after the header."""

    def __init__(self, source: Source, dimensions: int, why: str) -> None:
        self._source, self._dimensions, self._why = source, dimensions, why
        self.count = 0

    def read(
        self, stream: IO[bytes], writer: FolderWriter, lines: list[bytes], number: int
    ) -> None:
        """Read all lines, those given first; ``number`` is that of the first."""
        while lines := lines + stream.readlines(AT_ONCE):
            batch = self._batch(lines, number)
            if batch.words:
                writer.add(batch)
            self.count += len(batch.words)
            number += len(lines)
            lines = []

    def _batch(self, lines: list[bytes], first: int) -> Batch:
        words, tails, places = [], [], []
        between = self._dimensions - 1
        for place, raw in enumerate(lines, first):
            line = raw.rstrip(b" \t\r\n")
            if not line:
                continue
            if b"\t" in line:
                line = line.replace(b"\t", b" ")
            word, _, tail = line.partition(b" ")
            if tail.count(b" ") != between:
                word, tail = self._split(line, place)
            words.append(word)
            tails.append(tail)
            places.append(place)
        return Batch(words, self._numbers(tails, places), places)

    def _split(self, line: bytes, place: int) -> tuple[bytes, bytes]:
        """A line with too few or too many spaces: a word may have some, as a few of GloVe do."""
        fields = _fields(line)
        extra = fields[1 : len(fields) - self._dimensions]
        if len(fields) <= self._dimensions or any(map(_is_number, extra)):
            found = sum(map(_is_number, fields[1:]))
            word = fields[0].decode("utf-8", "replace")
            raise self._source.wrong(
                f"'{word}' has {found} numbers, expected {self._dimensions} {self._why}", line=place
            )
        cut = len(fields) - self._dimensions
        return b" ".join(fields[:cut]), b" ".join(fields[cut:])

    def _numbers(self, tails: list[bytes], places: list[int]) -> Floats:
        shape = len(tails), self._dimensions
        with np.errstate(over="ignore"):  # too large for float32 is infinite: complained of later
            try:
                joined = b",".join(tails).replace(b" ", b",")
                values = _DECODER.decode(b"[" + joined + b"]")
                return np.array(values, np.float32).reshape(shape)
            except (msgspec.DecodeError, ValueError):
                rows = [
                    self._carefully(tail, place) for tail, place in zip(tails, places, strict=True)
                ]
                return np.array(rows, np.float32).reshape(shape)

    def _carefully(self, tail: bytes, place: int) -> list[float]:
        fields = _fields(tail)
        for field in fields:
            if not _is_number(field):
                shown = field.decode("utf-8", "replace")
                raise self._source.wrong(f"'{shown}' is no number", line=place)
        if len(fields) != self._dimensions:
            raise self._source.wrong(
                f"{len(fields)} numbers, expected {self._dimensions} {self._why}", line=place
            )
        return list(map(float, fields))


def _fields(line: bytes) -> list[bytes]:
    return [field for field in line.replace(b"\t", b" ").strip(b" \r\n").split(b" ") if field]


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
