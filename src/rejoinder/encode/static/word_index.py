"""Find a word among millions without reading them all, by a sorted list of hashes on disk.

The words are the lines of one mapped file, which people can read, too. A word is looked up by a
binary search for its hash and then compared with the word in the file, so two words with the same
hash are not confused. Nothing is built at the start, whatever the number of words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.static.word_vectors import Ints

Hashes = NDArray[np.uint64]


def encode_word(word: str) -> bytes:
    """Return the line of a word in the file: UTF-8, a line break written as ``\\n``.

    Bytes of a converted file that are not UTF-8 are restored (surrogateescape).
    """
    try:
        data = word.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # another lone surrogate: no word, but it can be looked up
        data = word.encode("utf-8", "surrogatepass")
    return escape(data)


def escape(word: bytes) -> bytes:
    """Escape line breaks and backslashes."""
    if b"\\" in word or b"\n" in word:
        return word.replace(b"\\", b"\\\\").replace(b"\n", b"\\n")
    return word


def decode_word(line: bytes) -> str:
    """Return the word of a line of the file.

    >>> decode_word(encode_word("a\\\\n\\nb")) == "a\\\\n\\nb"
    True
    """
    if b"\\" in line:
        halves = line.split(b"\\\\")
        line = b"\\".join(half.replace(b"\\n", b"\n") for half in halves)
    return line.decode("utf-8", "surrogateescape")


def hashes_of(lines: Iterable[bytes]) -> Hashes:
    """Return the hash of each line."""
    digests = b"".join(hashlib.blake2b(line, digest_size=8).digest() for line in lines)
    return np.frombuffer(digests, "<u8")


def sorted_hashes(lines: Iterable[bytes]) -> tuple[Hashes, NDArray[np.int32]]:
    """Return the hashes in order, and the row of each."""
    hashes = hashes_of(lines)
    order = np.argsort(hashes, kind="stable")
    return hashes[order], order.astype(np.int32)


class Words(Sequence[str]):
    """The words in the order of their vectors, read one by one from the mapped file."""

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
        return decode_word(self.line(int(self._starts[place]), int(self._starts[place + 1])))

    def line(self, begin: int, end: int) -> bytes:
        """Return a line without its line break."""
        return bytes(self._text[begin : end - 1])

    def lines_at(self, rows: Ints) -> list[bytes]:
        """Return the lines of some words."""
        begins, ends = self._starts[rows].tolist(), self._starts[rows + 1].tolist()
        return [self.line(b, e) for b, e in zip(begins, ends, strict=True)]


class WordIndex:
    """Finds the rows of words."""

    def __init__(self, words: Words, hashes: Hashes, order: NDArray[np.int32]) -> None:
        self._words, self._hashes, self._order = words, hashes, order

    def rows(self, words: Sequence[str]) -> Ints:
        """Return the row of each word, -1 for a word without a row."""
        lines = [encode_word(word) for word in words]
        hashes = hashes_of(lines)
        places = np.searchsorted(self._hashes, hashes)
        result: Ints = np.full(len(words), -1, np.int64)
        # words may share a hash: all places with that hash are tried, usually just one
        pending = np.arange(len(words))
        while pending.size:
            inside = places[pending] < len(self._hashes)
            pending = pending[inside]
            pending = pending[self._hashes[places[pending]] == hashes[pending]]
            rows = self._order[places[pending]].astype(np.int64)
            here = self._words.lines_at(rows)
            wanted = [lines[i] for i in pending.tolist()]
            same = np.array([a == b for a, b in zip(here, wanted, strict=True)], bool)
            result[pending[same]] = rows[same]
            pending = pending[~same]
            places[pending] += 1
        return result
