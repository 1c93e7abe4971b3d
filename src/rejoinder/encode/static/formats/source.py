"""A file of another program, decompressed if it is gzip, with the errors of reading it."""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from rejoinder.errors import DataError
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
        with cast(io.BufferedReader, open_regular(self.path)) as raw:
            if raw.peek(2)[:2] == GZIP:
                with gzip.open(raw) as decompressed:
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


def read_exactly(stream: IO[bytes], size: int) -> bytes | None:
    """Read ``size`` bytes; None if the file ends before."""
    data = stream.read(size)
    return data if len(data) == size else None
