"""Text files with a word and its numbers on each line, with a header (word2vec, fastText) or
without (GloVe).

Plain lines are parsed together as JSON numbers, which is several times faster than one by one. A
batch with anything unusual in it is parsed again line by line, so that an error names its line.
"""

from __future__ import annotations

import codecs
from typing import IO, Any

import msgspec
import numpy as np

from rejoinder.encode.static.formats.source import Source
from rejoinder.encode.static.vectors_folder import Batch, FolderWriter
from rejoinder.encode.static.word_vectors import Floats

BATCH_BYTES = 2**22
"""Bytes of lines in a batch."""
MAX_DIMENSIONS = 2**16
_DECODER = msgspec.json.Decoder(list[float])


def is_row(line: bytes) -> bool:
    """Return whether a line is a word with numbers."""
    _, *values = _fields(line.removeprefix(codecs.BOM_UTF8)) or [b""]
    return bool(values) and all(map(_is_number, values))


def read_glove_text(source: Source, writer: FolderWriter) -> dict[str, Any]:
    """Read a file of GloVe into a folder."""
    with source.open() as stream:
        first = stream.readline(BATCH_BYTES).removeprefix(codecs.BOM_UTF8)
        dimensions = len(_fields(first)) - 1
        _Rows(source, dimensions, "as in the first line").read(stream, writer, [first], 1)
    return {"source_format": "GloVe text"}


def read_word2vec_text(source: Source, writer: FolderWriter) -> dict[str, Any]:
    """Read a text file of word2vec or fastText into a folder."""
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
    """Return the number of words and of dimensions, from the first line."""
    line = stream.readline(200).removeprefix(codecs.BOM_UTF8)
    count, dimensions = (int(field) for field in line.split())
    if not 0 < dimensions <= MAX_DIMENSIONS:
        raise source.wrong(
            f"the header says {dimensions} dimensions; expected 1 to {MAX_DIMENSIONS}", line=1
        )
    return count, dimensions


class _Rows:
    """The lines after the header; ``origin`` says where the number of dimensions is from."""

    def __init__(self, source: Source, dimensions: int, origin: str) -> None:
        self._source, self._dimensions, self._origin = source, dimensions, origin
        self.count = 0

    def read(
        self, stream: IO[bytes], writer: FolderWriter, lines: list[bytes], number: int
    ) -> None:
        """Read ``lines``, whose first has this number, and then the rest of the stream."""
        rest = b""
        while True:
            block = stream.read(BATCH_BYTES)
            *complete, rest = (rest + block).split(b"\n")
            if len(rest) > BATCH_BYTES:
                raise self._source.wrong(
                    f"the line has more than {BATCH_BYTES:,} bytes",
                    line=number + len(lines) + len(complete),
                )
            lines += complete if block else [rest]
            batch = self._batch(lines, number)
            if batch.words:
                writer.add(batch)
            self.count += len(batch.words)
            number += len(lines)
            lines = []
            if not block:
                return

    def _batch(self, lines: list[bytes], first: int) -> Batch:
        words, tails, numbers = [], [], []
        between = self._dimensions - 1
        for number, raw in enumerate(lines, first):
            line = raw.rstrip(b" \t\r\n")
            if not line:
                continue
            if b"\t" in line:
                line = line.replace(b"\t", b" ")
            word, _, tail = line.partition(b" ")
            if tail.count(b" ") != between:
                word, tail = self._split(line, number)
            words.append(word)
            tails.append(tail)
            numbers.append(number)
        return Batch(words, self._values(tails, numbers), numbers)

    def _split(self, line: bytes, number: int) -> tuple[bytes, bytes]:
        """Split a line with spaces in its word, as a few of GloVe have; refuse any other."""
        fields = _fields(line)
        extra = fields[1 : len(fields) - self._dimensions]
        if len(fields) <= self._dimensions or any(map(_is_number, extra)):
            count = sum(map(_is_number, fields[1:]))
            word = fields[0].decode("utf-8", "replace")
            raise self._source.wrong(
                f"'{word}' has {count} numbers, expected {self._dimensions} {self._origin}",
                line=number,
            )
        cut = len(fields) - self._dimensions
        return b" ".join(fields[:cut]), b" ".join(fields[cut:])

    def _values(self, tails: list[bytes], numbers: list[int]) -> Floats:
        shape = len(tails), self._dimensions
        with np.errstate(
            over="ignore"
        ):  # too large for float32 becomes infinite, which is refused later
            try:
                joined = b",".join(tails).replace(b" ", b",")
                values = _DECODER.decode(b"[" + joined + b"]")
                return np.array(values, np.float32).reshape(shape)
            except (msgspec.DecodeError, ValueError):
                rows = [
                    self._parse(tail, number) for tail, number in zip(tails, numbers, strict=True)
                ]
                return np.array(rows, np.float32).reshape(shape)

    def _parse(self, tail: bytes, number: int) -> list[float]:
        fields = _fields(tail)
        for field in fields:
            if not _is_number(field):
                shown = field.decode("utf-8", "replace")
                raise self._source.wrong(f"'{shown}' is no number", line=number)
        if len(fields) != self._dimensions:
            raise self._source.wrong(
                f"{len(fields)} numbers, expected {self._dimensions} {self._origin}", line=number
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
