"""Files: JSON lines in (plain, .gz, .zst, ``-``), whole files out.

Reading streams, a line at a time, and every complaint names ``file:line``. Writing goes to
a hidden file beside the target that is renamed at the end, so an output is whole or absent.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import gzip
import hashlib
import io
import os
import re
import sys
import zlib
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import msgspec
import numpy as np
import zstandard

from rejoinder.errors import DataError, UsageError
from rejoinder.items import Item, Score, item_from, score_from

T = TypeVar("T")

LONGEST_LINE = 16 * 2**20
"""A dialogue item is a few KB; a longer line is another format, and would eat the memory."""

FOREIGN = (
    ("compressed with gzip; give it a name that ends in .gz", b"\x1f\x8b"),
    ("compressed with zstd; give it a name that ends in .zst", b"\x28\xb5\x2f\xfd"),
    ("in UTF-16; convert it, for example with iconv -f UTF-16 -t UTF-8", codecs.BOM_UTF16_LE),
    ("in UTF-16; convert it, for example with iconv -f UTF-16 -t UTF-8", codecs.BOM_UTF16_BE),
)
"""How files begin that are no plain JSON lines."""

_MEANINGS = {"str": "text", "int": "a whole number", "float": "a number", "bool": "true or false"}
_MEANINGS |= {"object": "an object", "array": "a list", "null": "null"}


def open_stdin() -> IO[bytes]:
    if sys.stdin is None:
        raise UsageError("stdin is closed; give the name of a file instead of -")
    return sys.stdin.buffer


class JsonLines:
    """The records of one JSONL file, with their line numbers."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self.name = "stdin" if self.path == "-" else self.path
        self._raw: IO[bytes] | None = None
        self._size = 0

    @property
    def once(self) -> bool:
        """Whether it can be read a single time only: stdin, or another pipe."""
        path = Path(self.path)
        return self.path == "-" or (path.exists() and not path.is_file() and not path.is_dir())

    @property
    def fraction(self) -> float | None:
        """How much of the file has been read, for a progress bar; None where unknown."""
        if self._raw is None or not self._size or self._raw.closed:
            return None
        return self._raw.tell() / self._size

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        with contextlib.ExitStack() as stack:
            stream = self._open(stack)
            number = 0
            try:
                while line := stream.readline(LONGEST_LINE + 1):
                    number += 1
                    if number == 1:
                        line = line.removeprefix(codecs.BOM_UTF8)
                        if found := next((k for k, start in FOREIGN if line.startswith(start)), ""):
                            raise self.wrong(None, f"the file is {found}")
                    if len(line) > LONGEST_LINE:
                        raise self.wrong(
                            number,
                            f"the line is longer than {LONGEST_LINE >> 20} MB;"
                            " expected JSON lines, one small object a line",
                        )
                    if line.strip():
                        yield number, line
            except (EOFError, gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
                raise self.wrong(
                    number + 1, f"the compressed file is damaged or cut off ({error})"
                ) from None

    def open_bytes(self, stack: contextlib.ExitStack) -> IO[bytes]:
        """What stands in the file, compressed or not; the stack closes it, unless it is stdin."""
        if self.path == "-":
            return open_stdin()
        try:
            return stack.enter_context(open(self.path, "rb"))
        except OSError as error:
            reason = error.strerror or str(error)
            raise DataError(f"cannot be read: {reason.lower()}", path=self.name) from None

    def _open(self, stack: contextlib.ExitStack) -> IO[bytes]:
        raw = self.open_bytes(stack)
        if self.path == "-":
            return raw
        self._raw, self._size = raw, os.fstat(raw.fileno()).st_size
        if self.path.endswith(".gz"):
            return cast(IO[bytes], stack.enter_context(gzip.open(raw)))
        if self.path.endswith(".zst"):
            return io.BufferedReader(_WholeZstd(raw), 2**20)
        return raw

    def wrong(self, line: int | None, message: str) -> DataError:
        return DataError(message, path=self.name, line=line)

    def decode(self, convert: Callable[[Any], T]) -> Iterator[tuple[int, T]]:
        """Parse each line and convert it, turning every failure into ``file:line: …``."""
        decoder = msgspec.json.Decoder()
        for number, line in self:
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


class _WholeZstd(io.RawIOBase):
    """zstd that notices a cut-off file, which the plain stream reader passes as its end."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw
        self._decoder = _zstd_decoder()
        self._ready = b""
        self._started = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            if self._decoder.eof:
                rest = self._decoder.unused_data or self._raw.read(2**17)
                if not rest:
                    return 0
                self._decoder = _zstd_decoder()
            else:
                rest = self._raw.read(2**17)
                if not rest:
                    if self._started:
                        raise EOFError("the last zstd frame is incomplete")
                    return 0
            self._started = True
            self._ready = self._decoder.decompress(rest)
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size


def _zstd_decoder() -> zstandard.ZstdDecompressionObj:
    # public logs are packed with --long=31
    return zstandard.ZstdDecompressor(max_window_size=2**31).decompressobj()


def explain(problem: str) -> str:
    """Say a validation error of msgspec in our words: ``references[2].weight: expected …``."""
    message, _, where = problem.partition(" - at `")
    # where msgspec does not know the field, it says [...]
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
        return "NaN and Infinity are not JSON; leave out a value that is not known"
    if line.strip() in (b"[", b"{"):
        return "the file is one JSON document; expected JSON lines, one object a line"
    if not line.endswith(b"\n") and "truncated" in str(error):
        return "the file ends in the middle of a line; expected a complete JSON object"
    return f"broken JSON ({str(error).removeprefix('JSON is malformed: ')}); expected one object"


class UniqueIds:
    """Finds an id that stands twice, at 16 bytes an item, so that a long file can stream.

    Hashes are compared when their number has doubled, and at the end: the cost stays that of
    a sort, and a duplicate near the start of a long file is reported early.
    """

    def __init__(self, source: JsonLines) -> None:
        self._source = source
        self._hashes, self._lines = array("q"), array("Q")
        self._next_check = 1024

    def add(self, line: int, key: str) -> None:
        self._hashes.append(hash(key))
        self._lines.append(line)
        if len(self._hashes) == self._next_check:
            self.check()
            self._next_check *= 2

    def check(self) -> None:
        hashes = np.frombuffer(self._hashes, dtype=np.int64)
        order = np.argsort(hashes, kind="stable")
        same = np.flatnonzero(np.diff(hashes[order]) == 0)
        if same.size:
            where = same[np.argmin(order[same + 1])]
            first, second = (self._lines[order[where + i]] for i in (0, 1))
            raise self._source.wrong(
                second, f"the id stands in line {first} already; ids must be unique"
            )


def read_items(source: str | Path | JsonLines) -> Iterator[Item]:
    """Stream the items of a file; an empty file and a repeated id are errors."""
    lines = source if isinstance(source, JsonLines) else JsonLines(source)
    ids = UniqueIds(lines)
    empty = True
    for number, item in lines.decode(item_from):
        empty = False
        ids.add(number, item.id)
        yield item
    if empty:
        raise lines.wrong(None, "the file is empty; expected items, one JSON object a line")
    ids.check()


def read_scores(source: str | Path) -> Iterator[tuple[int, Score]]:
    """Stream the scores of a file with their line numbers; an empty file is an error."""
    lines = JsonLines(source)
    empty = True
    for pair in lines.decode(score_from):
        empty = False
        yield pair
    if empty:
        raise lines.wrong(None, "the file is empty; expected scores, one JSON object a line")


@contextlib.contextmanager
def open_output(path: str | Path | None) -> Iterator[IO[bytes]]:
    """A binary stream to ``path`` that appears there whole, or not at all.

    None and ``-`` are stdout. A target that is no regular file (a pipe, /dev/null) is
    written directly: renaming would replace it.
    """
    if path is None or str(path) == "-":
        with _blaming("stdout"):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        return
    target = Path(path).resolve()  # a link stays a link, to a new file
    special = target.exists() and not target.is_file()
    with _blaming(path):
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        # a name may be as long as the system allows, so the other one must not grow with it
        hidden = f".{target.name[:40]}.{os.getpid()}.part"
        beside = target if special else target.with_name(hidden)
        raw = open(beside, "wb")
    try:
        with _blaming(path):
            with raw, _compressed(raw, target.suffix) as stream:
                yield stream
            if not special:
                os.replace(beside, target)
    except BaseException:
        if not special:
            beside.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _blaming(target: str | Path) -> Iterator[None]:
    """What the system says of a file that can't be written, as a message to the user."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"{target}: cannot be written: {reason}") from None


def _compressed(raw: IO[bytes], suffix: str) -> contextlib.AbstractContextManager[IO[bytes]]:
    if suffix == ".gz":
        # neither name nor time stamp: the same scores make the same bytes
        return cast(IO[bytes], gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0))
    if suffix == ".zst":
        return zstandard.ZstdCompressor(write_checksum=True).stream_writer(raw, closefd=False)
    return contextlib.nullcontext(raw)


def write_jsonl(
    stream: IO[bytes], records: list[Item] | list[Score] | list[dict[str, Any]]
) -> None:
    """Append records, a line each."""
    if records:
        stream.write(msgspec.json.Encoder().encode_lines(records))


def file_digest(path: Path, kind: str | Callable[[], Any] = "sha256") -> bytes:
    """The digest of a file's content."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, kind).digest()
