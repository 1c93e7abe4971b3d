"""Read and write JSON lines: plain, .gz, .zst, or stdin (``-``).

Reading streams, a line at a time, and every error message begins with ``file:line``.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import re
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any, TypeVar

import msgspec
import numpy as np

from rejoinder.errors import DataError
from rejoinder.files.compressed import DAMAGE, decompressed, is_compressed
from rejoinder.files.output import open_output
from rejoinder.files.paths import AnyPath, exists, is_file, is_folder, open_input, open_stdin
from rejoinder.items import Item, Score, score_from

T = TypeVar("T")

MAX_LINE_BYTES = 16 * 2**20
"""Bytes of a line; a dialogue item has a few KB, a longer line is of another format."""

CHUNK_LINES = 8192
"""Lines that are decoded, and scored, together."""
CHUNK_BYTES = 2 * MAX_LINE_BYTES
"""A chunk ends with the line that exceeds this size."""

_UTF16 = "in UTF-16; convert it, for example with iconv -f UTF-16 -t UTF-8"
FOREIGN = (
    ("compressed with gzip; give it a name that ends in .gz", b"\x1f\x8b"),
    ("compressed with zstd; give it a name that ends in .zst", b"\x28\xb5\x2f\xfd"),
    (_UTF16, codecs.BOM_UTF16_LE),
    (_UTF16, codecs.BOM_UTF16_BE),
    ("a Parquet file; give it a name that ends in .parquet", b"PAR1"),
    ("a zip file or a workbook of Excel; unpack it, or save it as 'CSV UTF-8'", b"PK\x03\x04"),
)
"""What a file is that begins with these bytes, and what to do with it."""

_MEANINGS = {"str": "text", "int": "a whole number", "float": "a number", "bool": "true or false"}
_MEANINGS |= {"object": "an object", "array": "a list", "null": "null"}


@dataclass(frozen=True)
class LineChunk:
    """Some lines of a file, and the number of the first one."""

    first: int
    lines: list[bytes]

    def numbered(self) -> Iterator[tuple[int, bytes]]:
        """Yield the lines that are not blank, with their numbers."""
        for number, line in enumerate(self.lines, self.first):
            if line.strip():
                yield number, line


class JsonLines:
    """A file of JSON lines; iterating gives line numbers and lines."""

    def __init__(self, path: AnyPath) -> None:
        self.path = os.fspath(path)
        self.name = "stdin" if self.path == "-" else self.path
        self._raw: IO[bytes] | None = None
        self._size = 0

    @property
    def once(self) -> bool:
        """Whether it can be read only once: stdin or another pipe."""
        if self.path == "-":
            return True
        return exists(self.path) and not is_file(self.path) and not is_folder(self.path)

    @property
    def fraction(self) -> float | None:
        """Share of the file that has been read, for a progress bar; None if unknown."""
        if self._raw is None or not self._size or self._raw.closed:
            return None
        return self._raw.tell() / self._size

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        for chunk in self.chunks():
            yield from chunk.numbered()

    def chunks(self) -> Iterator[LineChunk]:
        """Yield the lines in chunks of ``CHUNK_LINES``, or fewer if they are long.

        An error is raised after the lines before it.
        """
        first, size = 1, 0
        lines: list[bytes] = []
        problem = None
        with contextlib.ExitStack() as stack:
            stream = self._open(stack)
            try:
                while line := stream.readline(MAX_LINE_BYTES + 1):
                    if first == 1 and not lines:
                        line = self._first_line(line)
                    if len(line) > MAX_LINE_BYTES:
                        problem = self.wrong(
                            first + len(lines),
                            f"the line is longer than {MAX_LINE_BYTES >> 20} MB;"
                            " expected JSON lines, one small object a line",
                        )
                        break
                    lines.append(line)
                    size += len(line)
                    if len(lines) == CHUNK_LINES or size > CHUNK_BYTES:
                        yield LineChunk(first, lines)
                        first, size, lines = first + len(lines), 0, []
            except DAMAGE as error:
                problem = self.wrong(
                    first + len(lines), f"the compressed file is damaged or cut off ({error})"
                )
            if lines:
                yield LineChunk(first, lines)
        if problem is not None:
            raise problem

    def _first_line(self, line: bytes) -> bytes:
        """Return the first line without a byte order mark; DataError for other formats."""
        line = line.removeprefix(codecs.BOM_UTF8)
        if kind := next((kind for kind, start in FOREIGN if line.startswith(start)), ""):
            raise self.wrong(None, f"the file is {kind}")
        return line

    def open_bytes(self, stack: contextlib.ExitStack) -> IO[bytes]:
        """Open the file as it is, compressed or not; the stack closes it, unless it is stdin."""
        if self.path == "-":
            return open_stdin()
        return stack.enter_context(open_input(self.path))

    def _open(self, stack: contextlib.ExitStack) -> IO[bytes]:
        raw = self.open_bytes(stack)
        if self.path == "-":
            return raw
        self._raw, self._size = raw, os.fstat(raw.fileno()).st_size
        return decompressed(raw, self.path) if is_compressed(self.path) else raw

    def wrong(self, line: int | None, message: str) -> DataError:
        return DataError(message, path=self.name, line=line)

    def decode(self, convert: Callable[[Any], T]) -> Iterator[tuple[int, T]]:
        """Parse each line and convert it, turning every failure into ``file:line: …``."""
        return self.decode_lines(self, convert)

    def decode_lines(
        self, lines: Iterable[tuple[int, bytes]], convert: Callable[[Any], T]
    ) -> Iterator[tuple[int, T]]:
        """Parse and convert some numbered lines of the file."""
        decoder = msgspec.json.Decoder()
        for number, line in lines:
            try:
                record = decoder.decode(line)
                if not isinstance(record, dict):
                    kind = "a JSON array" if isinstance(record, list) else "not an object"
                    raise self.wrong(number, f"the line is {kind}; expected one object a line")
                yield number, convert(record)
            except msgspec.ValidationError as error:
                raise self.wrong(number, explain(str(error))) from None
            except OverflowError:
                raise self.wrong(number, "a number is too large") from None
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise self.wrong(number, _why_broken(line, error)) from None


def explain(problem: str) -> str:
    """Rewrite a validation error of msgspec: ``references[2].weight: expected …``."""
    message, _, where = problem.partition(" - at `")
    # msgspec writes [...] where it does not know the field
    place = where.rstrip("`").removeprefix("$").replace("[...]", "").removeprefix(".")
    message = message.replace("Number out of range", "A number is too large")
    message = message.replace("Object missing required field", "the field is missing:")
    message = re.sub(
        r"`([\w| ]+)`",
        lambda m: " or ".join(_MEANINGS.get(w, w) for w in m[1].split(" | ")),
        message,
    )
    if not message.startswith("JSON"):
        message = message[0].lower() + message[1:]
    return f"{place}: {message}" if place else message


def _why_broken(line: bytes, error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "the line is not UTF-8; convert the file, for example with iconv -t UTF-8"
    outside = re.sub(rb'"(?:[^"\\]|\\.)*"', b'""', line)
    if re.search(rb"[:\[,]\s*(NaN|-?Infinity)\b", outside):
        return "NaN and Infinity are not JSON; leave out unknown values"
    if line.strip() in (b"[", b"{"):
        return "the file is one JSON document; expected JSON lines, one object a line"
    if not line.endswith(b"\n") and "truncated" in str(error):
        return "the file ends in the middle of a line; expected a complete JSON object"
    return f"broken JSON ({str(error).removeprefix('JSON is malformed: ')}); expected one object"


class UniqueIds:
    """Find a repeated id with 16 bytes an item, so that long files can be streamed.

    Hashes are compared whenever their number has doubled, and at the end: the cost is that of a
    sort, and a repetition near the start of a long file is reported early.
    """

    def __init__(self, source: JsonLines) -> None:
        self._source = source
        self._hashes, self._lines = array("q"), array("Q")
        self._next_check = 1024

    def add(self, line: int, key: str) -> None:
        self.extend([line], [key])

    def extend(self, lines: Iterable[int], keys: Iterable[str]) -> None:
        """Add the ids of some items with their lines."""
        self._hashes.extend(map(hash, keys))
        self._lines.extend(lines)
        if len(self._hashes) >= self._next_check:
            self.check()
            self._next_check = 2 * len(self._hashes)

    def check(self) -> None:
        hashes = np.frombuffer(self._hashes, dtype=np.int64)
        order = np.argsort(hashes, kind="stable")
        same = np.flatnonzero(np.diff(hashes[order]) == 0)
        if same.size:
            where = same[np.argmin(order[same + 1])]
            first, second = (self._lines[order[where + i]] for i in (0, 1))
            raise self._source.wrong(second, f"the id is in line {first}, too; ids must be unique")


def read_scores(source: AnyPath) -> Iterator[tuple[int, Score]]:
    """Stream the scores of a file with their line numbers; an empty file is an error."""
    lines = JsonLines(source)
    empty = True
    for pair in lines.decode(score_from):
        empty = False
        yield pair
    if empty:
        raise lines.wrong(None, "the file is empty; expected scores, one JSON object a line")


def write_jsonl(
    stream: IO[bytes], records: list[Item] | list[Score] | list[dict[str, Any]]
) -> None:
    """Write records to a stream, one a line."""
    if records:
        stream.write(msgspec.json.Encoder().encode_lines(records))


def write_jsonl_file(path: AnyPath | None, records: list[Any]) -> None:
    """Write records to a file that appears whole or not at all (``-``: stdout; None: nowhere)."""
    if path is not None:
        with open_output(path) as stream:
            write_jsonl(stream, records)
