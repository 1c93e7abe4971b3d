"""A foreign file, unpacked if it was packed with gzip, with the failures of reading it."""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from rejoinder.errors import DataError

GZIP = b"\x1f\x8b"


class Source:
    """One file; every complaint names it."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name

    def wrong(self, message: str, line: int | None = None) -> DataError:
        return DataError(message, path=self.name, line=line)

    @contextlib.contextmanager
    def blamed(self) -> Iterator[None]:
        """Failures of unpacking as complaints about the data."""
        try:
            yield
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise self.wrong(f"the compressed file is damaged or cut off ({error})") from None

    @contextlib.contextmanager
    def open(self) -> Iterator[io.BufferedReader]:
        """The bytes of the file, unpacked."""
        with self.path.open("rb") as raw:
            if raw.peek(2)[:2] == GZIP:
                with gzip.open(raw) as unpacked:
                    yield io.BufferedReader(cast(io.RawIOBase, unpacked), 2**20)
            else:
                yield raw

    def head(self, size: int) -> bytes:
        """The first bytes of the file; complains if it can't be read at all."""
        try:
            with self.blamed(), self.open() as stream:
                return stream.read(size)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise self.wrong(f"cannot be read: {reason}") from None


def read_exactly(stream: IO[bytes], size: int) -> bytes | None:
    """So many bytes, or None if the file ends before."""
    data = stream.read(size)
    return data if len(data) == size else None
