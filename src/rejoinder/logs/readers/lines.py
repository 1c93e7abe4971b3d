"""Bytes on disk → numbered lines: cutting a file for several processes, and surviving damage.

What cannot be a line of text (cut-off compression, 16 MB without a newline, no UTF-8) is set
aside here, so that a reader sees decodable lines only, and one bad place costs one record.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, Any

import zstandard

from rejoinder.errors import DataError
from rejoinder.io import LONGEST_LINE

CHUNK = 32 * 2**20
BLOCK = 2**20
PIECE = 2**14
"""Compressed bytes a step: in a damaged file, what the failing step held is lost."""
BOM = b"\xef\xbb\xbf"
BEGINNING = 500
"""How many characters of a bad record are kept."""


@dataclass(frozen=True)
class Chunk:
    """A part of an input that one process reads: bytes ``start`` to ``end``, or to the end."""

    path: str
    start: int = 0
    end: int | None = None
    first_line: int = 1


@dataclass(frozen=True)
class BadLine:
    """A line, or a damaged rest of a file, that is no text."""

    line: int
    reason: str
    text: str


def beginning(raw: bytes) -> str:
    """The first characters of a record, for the rejects file."""
    return raw[: 4 * BEGINNING].decode("utf-8", "replace").strip()[:BEGINNING]


def is_plain(path: str) -> bool:
    """Whether bytes of the file are bytes of its lines."""
    return not path.endswith((".gz", ".zst"))


def open_raw(path: str) -> IO[bytes]:
    """Open for reading, or say in words why not."""
    try:
        if os.path.isdir(path):
            raise IsADirectoryError(0, "it is a folder")
        return open(path, "rb")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError(f"cannot be read: {reason}", path=path) from None


def cut(path: str, size: int = CHUNK) -> list[Chunk]:
    """Byte ranges of about ``size`` that begin at line starts and know their first line."""
    starts, offset, line, target = [(0, 1)], 0, 1, size
    with open_raw(path) as file:
        while block := file.read(BLOCK):
            begin = 0
            while target - offset <= len(block):
                at = block.find(b"\n", max(target - offset - 1, 0))
                if at < 0:
                    break
                line += block.count(b"\n", begin, at + 1)
                begin = at + 1
                starts.append((offset + begin, line))
                target = offset + begin + size
            line += block.count(b"\n", begin)
            offset += len(block)
    if len(starts) > 1 and starts[-1][0] == offset:
        starts.pop()
    ends = [*(start for start, _ in starts[1:]), offset]
    return [Chunk(path, start, end, n) for (start, n), end in zip(starts, ends, strict=True)]


class Lines:
    """The non-blank lines of a chunk with their numbers; ``bad`` collects what was no line.

    A gap in the numbers is a blank or a bad line: formats in which blank lines mean something
    look at that.
    """

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.bad: list[BadLine] = []

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        number = self.chunk.first_line
        rest: list[bytes] = []  # the unfinished last line, in pieces
        held, skipping, damage = 0, False, None
        with ExitStack() as stack:
            blocks = _blocks(self.chunk, stack)
            if self.chunk.start == 0:
                blocks = _without_mark(blocks)
            try:
                for block in blocks:
                    first, *others = block.split(b"\n")
                    held += len(first)
                    if not skipping:
                        rest.append(first)
                        if held > LONGEST_LINE:
                            self._too_long(number, rest)
                            skipping = True
                    if not others:
                        continue
                    if not skipping and (line := self._text(number, b"".join(rest))):
                        yield number, line
                    number += 1
                    last = others.pop()
                    for line in others:
                        if text := self._text(number, line):
                            yield number, text
                        number += 1
                    rest, held, skipping = [last], len(last), False
            except (EOFError, zlib.error, zstandard.ZstdError) as error:
                damage = str(error)
        last = b"".join(rest)
        if damage:
            self.bad.append(
                BadLine(
                    number,
                    f"the compressed file is damaged or cut off here ({damage});"
                    " expected a whole file, the records before this place were read",
                    beginning(last),
                )
            )
        elif not skipping and (line := self._text(number, last)):
            yield number, line

    def _text(self, number: int, line: bytes) -> bytes | None:
        """The line if it is text, None if it is blank or was set aside."""
        if len(line) > LONGEST_LINE:
            self._too_long(number, [line])
            return None
        if not line.isascii():
            try:
                line.decode()
            except UnicodeDecodeError as error:
                reason = f"the line is not UTF-8 (byte {error.start + 1}); expected UTF-8 text"
                self.bad.append(BadLine(number, reason, beginning(line)))
                return None
        return None if not line or line.isspace() else line

    def _too_long(self, number: int, pieces: list[bytes]) -> None:
        reason = f"the line is longer than {LONGEST_LINE >> 20} MB; expected one record a line"
        self.bad.append(BadLine(number, reason, beginning(b"".join(pieces)[: 4 * BEGINNING])))


def _blocks(chunk: Chunk, stack: ExitStack) -> Iterator[bytes]:
    """The (decompressed) bytes of a chunk."""
    raw = stack.enter_context(open_raw(chunk.path))
    if chunk.path.endswith(".gz"):
        return _decompress(raw, lambda: zlib.decompressobj(31))
    if chunk.path.endswith(".zst"):
        # Reddit's dumps are written with --long=31: the default window refuses them
        dctx = zstandard.ZstdDecompressor(max_window_size=2**31)
        return _decompress(raw, dctx.decompressobj)
    return _range(raw, chunk)


def _range(raw: IO[bytes], chunk: Chunk) -> Iterator[bytes]:
    if chunk.start:
        raw.seek(chunk.start)
    left = sys.maxsize if chunk.end is None else chunk.end - chunk.start
    while left > 0 and (block := raw.read(min(BLOCK, left))):
        left -= len(block)
        yield block


def _decompress(raw: IO[bytes], start: Any) -> Iterator[bytes]:
    """All complete data of all frames; EOFError if the last one is not complete."""
    decoder = None
    while piece := raw.read(PIECE):
        while piece:
            if decoder is None:
                piece = piece.lstrip(b"\0")  # padding of tapes, as gzip itself allows
                if not piece:
                    break
                decoder = start()
            if data := decoder.decompress(piece):
                yield data
            piece = b""
            if decoder.eof:
                piece, decoder = decoder.unused_data, None
    if decoder is not None:
        raise EOFError("its end is missing")


def _without_mark(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Without the byte order mark that some editors put first."""
    first = b""
    for block in blocks:
        first += block
        if len(first) >= len(BOM):  # blocks of a compressed file may be of any size
            break
    yield first.removeprefix(BOM)
    yield from blocks
