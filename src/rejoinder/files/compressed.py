"""Decompress gzip and zstd in bounded pieces, and refuse files that expand without end.

A few KB of zstd can hold gigabytes: the decoder gets so little input at a time that a piece of
output stays below 32 MB, and a file that expands far beyond what text ever does is refused.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from typing import IO, Any

import zstandard

from rejoinder.errors import DataError

DAMAGE = (EOFError, zlib.error, zstandard.ZstdError)
"""What the pieces of a damaged file raise."""

MAX_RATIO = 250
"""Bytes of output to a byte of input; dialogue logs reach about 30."""
FREE_OUTPUT = 64 * 2**20
"""So much output is not checked against the ratio: small repetitive files are harmless."""

_GZIP_INPUT, _GZIP_OUTPUT = 2**16, 2**20
_ZSTD_INPUT = 1024
"""A block of zstd takes 4 bytes at least and makes 128 KB at most: 32 MB a step."""
_WINDOW = 2**31
"""Public logs are packed with ``zstd --long=31``."""


def is_compressed(path: str) -> bool:
    """Return whether the name says that the file is compressed."""
    return path.endswith((".gz", ".zst"))


def decompressed(raw: IO[bytes], name: str) -> IO[bytes]:
    """Return a stream of the decompressed content; ``name`` ends in .gz or .zst."""
    return io.BufferedReader(_Stream(pieces(raw, name)), 2**20)


def pieces(raw: IO[bytes], name: str) -> Iterator[bytes]:
    """Yield the decompressed content of all frames, one piece after the other.

    Raises one of DAMAGE where the file is damaged or its end is missing, after everything that
    could be read before it, and DataError where it expands beyond MAX_RATIO.
    """
    steps = _gzip_steps(raw) if name.endswith(".gz") else _zstd_steps(raw)
    read = made = 0
    for size, data in steps:
        read += size
        made += len(data)
        if made > FREE_OUTPUT and made > MAX_RATIO * read:
            raise DataError(
                f"the compressed file expands to more than {MAX_RATIO} times its size, which"
                " text does not; expected text (decompress it yourself if it is what you want)",
                path=name,
            )
        if data:
            yield data


def _gzip_steps(raw: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield for each step the bytes that were read for it, and its output."""
    decoder: Any = None
    rest = b""
    while chunk := rest or raw.read(_GZIP_INPUT):
        read = 0 if rest else len(chunk)
        if decoder is None:
            chunk = chunk.lstrip(b"\0")  # padding of tapes, as gzip itself allows
            if not chunk:
                rest = b""
                continue
            decoder = zlib.decompressobj(31)
        data = decoder.decompress(chunk, _GZIP_OUTPUT)
        rest = decoder.unconsumed_tail
        yield read, data
        while not decoder.eof and not rest and len(data) == _GZIP_OUTPUT:
            data = decoder.decompress(b"", _GZIP_OUTPUT)  # what it still holds back
            yield 0, data
        if decoder.eof:
            rest, decoder = decoder.unused_data, None
    if decoder is not None:
        raise EOFError("its end is missing")


def _zstd_steps(raw: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    context = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    decoder: Any = None
    while chunk := raw.read(_ZSTD_INPUT):
        read = len(chunk)
        while chunk:
            if decoder is None:
                chunk = chunk.lstrip(b"\0")
                if not chunk:
                    break
                decoder = context.decompressobj()
            yield read, decoder.decompress(chunk)
            read, chunk = 0, b""
            if decoder.eof:
                chunk, decoder = decoder.unused_data, None
    if decoder is not None:
        raise EOFError("its end is missing")


class _Stream(io.RawIOBase):
    """The pieces as a readable stream."""

    def __init__(self, content: Iterator[bytes]) -> None:
        self._content = content
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._ready:
            self._ready = memoryview(next(self._content, b""))
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size
