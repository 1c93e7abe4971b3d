"""Words with vectors, and what happens to a word that is not among them.

The policy is the same for every source: the word as it is written; else in lower case; else
composed of its pieces, where the source has pieces (the character n-grams of fastText, the word
pieces of an encoder's table); else it is unknown, which is told apart from a vector of zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Index(Protocol):
    """Finds words."""

    def rows(self, words: Sequence[str]) -> Ints:
        """The row of each word, -1 where there is none."""


class Table(Protocol):
    """A matrix with a row for each word."""

    def take(self, rows: Ints) -> Floats:
        """[n, d] a copy of some rows."""


class Pieces(Protocol):
    """Makes a vector of a word that has none, from what the word consists of."""

    def compose(self, words: Sequence[str]) -> tuple[Floats, Bools]:
        """[n, d] vectors, and [n] whether there was anything to make them of."""


@dataclass(eq=False)
class WordVectors:
    """Words with vectors, memory-mapped."""

    name: str
    """What the user called them."""
    digest: str
    """12 hex digits of the content; part of the signature of every metric that reads them."""
    dimensions: int
    words: Sequence[str]
    index: Index
    table: Table
    pieces: Pieces | None = None
    counts: Ints | None = None
    """How often each word stood in the texts that were learnt from, if that is known."""

    def rarity(self, words: Sequence[str], often: float) -> Floats:
        """[n] weights from 0 to 1, by how rare words are: a / (a + p) for a word with the share p
        of all tokens (Arora et al. 2017), so that a word with the share a = ``often`` counts half
        as much as one that nobody has seen. Without counts, all words weigh the same.
        """
        if self.counts is None:
            return np.ones(len(words), np.float32)
        rows = self.index.rows([word.lower() for word in words])
        seen = np.where(rows >= 0, self.counts[rows], 0) / max(1, int(self.counts.sum()))
        return (often / (often + seen)).astype(np.float32)

    def find(self, words: Sequence[str]) -> tuple[Floats, Bools]:
        """[n, d] vectors, zeros where a word is unknown, and [n] whether it is known."""
        rows = self.index.rows(words)
        lower = {i: words[i].lower() for i in np.flatnonzero(rows < 0).tolist()}
        changed = [i for i, word in lower.items() if word != words[i]]
        if changed:
            rows[changed] = self.index.rows([lower[i] for i in changed])
        known = rows >= 0
        vectors = np.zeros((len(words), self.dimensions), np.float32)
        vectors[known] = self.table.take(rows[known])
        missing = np.flatnonzero(~known).tolist()
        if missing and self.pieces is not None:
            vectors[missing], known[missing] = self.pieces.compose([words[i] for i in missing])
        return vectors, known
