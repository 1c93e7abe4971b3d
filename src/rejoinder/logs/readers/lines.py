"""Read numbered lines of files that are split among several processes and may be damaged.

Input that is not a line of text (a cut-off compressed file, 16 MB without a newline, invalid UTF-8)
is collected separately, so readers only see decodable lines, and one bad place costs one record.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO

from rejoinder.files.compressed import DAMAGE, is_compressed, pieces
from rejoinder.files.jsonl import MAX_LINE_BYTES
from rejoinder.files.paths import open_regular

CHUNK = 32 * 2**20
BLOCK = 2**20
BOM = b"\xef\xbb\xbf"
BEGINNING = 500
"""Characters of a bad record that are kept."""


@dataclass(frozen=True)
class Chunk:
    """A part of an input that one process reads: bytes ``start`` to ``end``, or to the end."""

    path: str
    start: int = 0
    end: int | None = None
    first_line: int = 1


@dataclass(frozen=True)
class BadLine:
    """A line, or the damaged rest of a file, that is not text."""

    line: int
    reason: str
    text: str


def beginning(raw: bytes) -> str:
    """Return the first characters of a record, for the rejects file."""
    return raw[: 4 * BEGINNING].decode("utf-8", "replace").strip()[:BEGINNING]


def cut(path: str, size: int = CHUNK) -> list[Chunk]:
    """Return byte ranges of about ``size`` that begin at line starts, each with its first line."""
    starts, offset, line, target = [(0, 1)], 0, 1, size
    with open_regular(path) as file:
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
    """The non-blank lines of a chunk with their numbers; ``bad`` collects the bad lines.

    A gap in the numbers is a blank or a bad line, which separates dialogues in some formats.
    """

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.bad: list[BadLine] = []

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        number = self.chunk.first_line
        rest: list[bytes] = []  # the unfinished last line, in pieces
        line_bytes, skipping, damage = 0, False, None
        with ExitStack() as stack:
            blocks = _blocks(self.chunk, stack)
            if self.chunk.start == 0:
                blocks = _without_mark(blocks)
            try:
                for block in blocks:
                    first, *following = block.split(b"\n")
                    line_bytes += len(first)
                    if not skipping:
                        rest.append(first)
                        if line_bytes > MAX_LINE_BYTES:
                            self._too_long(number, rest)
                            skipping = True
                    if not following:
                        continue
                    if not skipping and (line := self._text(number, b"".join(rest))):
                        yield number, line
                    number += 1
                    last = following.pop()
                    for line in following:
                        if text := self._text(number, line):
                            yield number, text
                        number += 1
                    rest, line_bytes, skipping = [last], len(last), False
            except DAMAGE as error:
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
        """Return the line if it is text; None if it is blank or bad."""
        if len(line) > MAX_LINE_BYTES:
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
        reason = f"the line is longer than {MAX_LINE_BYTES >> 20} MB; expected one record a line"
        self.bad.append(BadLine(number, reason, beginning(b"".join(pieces)[: 4 * BEGINNING])))


def _blocks(chunk: Chunk, stack: ExitStack) -> Iterator[bytes]:
    """Yield the (decompressed) bytes of a chunk."""
    raw = stack.enter_context(open_regular(chunk.path))
    return pieces(raw, chunk.path) if is_compressed(chunk.path) else _range(raw, chunk)


def _range(raw: IO[bytes], chunk: Chunk) -> Iterator[bytes]:
    if chunk.start:
        raw.seek(chunk.start)
    left = sys.maxsize if chunk.end is None else chunk.end - chunk.start
    while left > 0 and (block := raw.read(min(BLOCK, left))):
        left -= len(block)
        yield block


def _without_mark(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Skip the byte order mark that some editors write first."""
    first = b""
    for block in blocks:
        first += block
        if len(first) >= len(BOM):  # blocks of a compressed file may be of any size
            break
    yield first.removeprefix(BOM)
    yield from blocks
