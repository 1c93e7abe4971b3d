"""A file of another program, decompressed if it is gzip, with the errors of reading it."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from rejoinder.errors import DataError
from rejoinder.files.compressed import FREE_OUTPUT, MAX_RATIO
from rejoinder.files.paths import open_regular, reason

GZIP = b"\x1f\x8b"


class Source:
    """One file; every error names it."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name

    def wrong(self, message: str, line: int | None = None) -> DataError:
        """Return an error about the file."""
        return DataError(message, path=self.name, line=line)

    @contextlib.contextmanager
    def explain_damage(self) -> Iterator[None]:
        """Turn errors of decompression into DataError."""
        try:
            yield
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise self.wrong(f"the compressed file is damaged or cut off ({error})") from None

    @contextlib.contextmanager
    def open(self) -> Iterator[io.BufferedReader]:
        """Open the file, decompressed."""
        with open_regular(self.path) as raw:
            if raw.peek(2)[:2] == GZIP:
                with _BoundedGzip(self, raw) as decompressed:
                    yield io.BufferedReader(cast(io.RawIOBase, decompressed), 2**20)
            else:
                yield raw

    def head(self, size: int) -> bytes:
        """Return the first bytes of the file."""
        try:
            with self.explain_damage(), self.open() as stream:
                return stream.read(size)
        except OSError as error:
            raise self.wrong(f"cannot be read: {reason(error)}") from None


class _BoundedGzip(gzip.GzipFile):
    """A gzip file that refuses to expand far more than vectors do.

    (``files.compressed`` reads a stream once; binary models of fastText are read by seeking.)
    """

    def __init__(self, source: Source, raw: io.BufferedReader) -> None:
        super().__init__(fileobj=raw, mode="rb")
        self._source = source
        self._max_bytes = max(FREE_OUTPUT, MAX_RATIO * os.fstat(raw.fileno()).st_size)

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer)
        if self.tell() > self._max_bytes:
            raise self._source.wrong(
                f"the compressed file expands to more than {MAX_RATIO} times its size, which word"
                " vectors do not"
            )
        return count


def read_exactly(stream: IO[bytes], size: int) -> bytes | None:
    """Read ``size`` bytes; None if the file ends before."""
    data = stream.read(size)
    return data if len(data) == size else None
