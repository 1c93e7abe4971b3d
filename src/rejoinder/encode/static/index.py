"""Finding a word among a million without reading them all: a sorted list of hashes on disk.

Words lie end to end in one mapped file, a line each, so that people can read it too. A word is
looked up by a binary search for its hash, and what is found is compared with it: a hash decides
only where to look. Nothing is built at the start, whatever the number of words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.static.vectors import Ints

Hashes = NDArray[np.uint64]


def stored(word: str) -> bytes:
    """A word as it stands in the file: UTF-8, a line break written as ``\\n``.

    Bytes that were no UTF-8 in a foreign file come back as they were (surrogateescape).
    """
    try:
        data = word.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # another lone surrogate: no word, but it may be asked for
        data = word.encode("utf-8", "surrogatepass")
    return escaped(data)


def escaped(word: bytes) -> bytes:
    if b"\\" in word or b"\n" in word:
        return word.replace(b"\\", b"\\\\").replace(b"\n", b"\\n")
    return word


def restored(line: bytes) -> str:
    """The word behind a line of the file.

    >>> restored(stored("a\\\\n\\nb")) == "a\\\\n\\nb"
    True
    """
    if b"\\" in line:
        halves = line.split(b"\\\\")
        line = b"\\".join(half.replace(b"\\n", b"\n") for half in halves)
    return line.decode("utf-8", "surrogateescape")


def hashes_of(lines: Iterable[bytes]) -> Hashes:
    digests = b"".join(hashlib.blake2b(line, digest_size=8).digest() for line in lines)
    return np.frombuffer(digests, "<u8")


def sorted_hashes(lines: Iterable[bytes]) -> tuple[Hashes, NDArray[np.int32]]:
    """The hashes in order, and the row behind each."""
    hashes = hashes_of(lines)
    order = np.argsort(hashes, kind="stable")
    return hashes[order], order.astype(np.int32)


class Words(Sequence[str]):
    """The words in the order of their vectors, read from the mapped file one by one."""

    def __init__(self, text: memoryview, starts: Ints) -> None:
        self._text, self._starts = text, starts

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: int | slice) -> str | list[str]:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        place = range(len(self))[number]
        return restored(self.line(int(self._starts[place]), int(self._starts[place + 1])))

    def line(self, begin: int, end: int) -> bytes:
        return bytes(self._text[begin : end - 1])

    def lines_at(self, rows: Ints) -> list[bytes]:
        begins, ends = self._starts[rows].tolist(), self._starts[rows + 1].tolist()
        return [self.line(b, e) for b, e in zip(begins, ends, strict=True)]


class WordIndex:
    """Rows of words."""

    def __init__(self, words: Words, hashes: Hashes, order: NDArray[np.int32]) -> None:
        self._words, self._hashes, self._order = words, hashes, order

    def rows(self, words: Sequence[str]) -> Ints:
        """The row of each word, -1 where there is none."""
        lines = [stored(word) for word in words]
        wanted = hashes_of(lines)
        places = np.searchsorted(self._hashes, wanted)
        found: Ints = np.full(len(words), -1, np.int64)
        # two words may have one hash: all places with it are tried, mostly that is just one
        open_ = np.arange(len(words))
        while open_.size:
            inside = places[open_] < len(self._hashes)
            open_ = open_[inside]
            open_ = open_[self._hashes[places[open_]] == wanted[open_]]
            rows = self._order[places[open_]].astype(np.int64)
            here = self._words.lines_at(rows)
            asked = [lines[i] for i in open_.tolist()]
            same = np.array([a == b for a, b in zip(here, asked, strict=True)], bool)
            found[open_[same]] = rows[same]
            open_ = open_[~same]
            places[open_] += 1
        return found
