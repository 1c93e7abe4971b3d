"""Static word vectors, and the policy for words that have none.

The policy is the same for every source: the word as it is written; else in lower case; else
composed of its subwords, where the source has them (the character n-grams of fastText, the
subword tokens of an encoder); else it is unknown, which is not the same as a vector of zeros.
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
    """Finds the rows of words."""

    def rows(self, words: Sequence[str]) -> Ints:
        """Return the row of each word, -1 for a word without a row."""


class Table(Protocol):
    """A matrix with a row for each word."""

    def take(self, rows: Ints) -> Floats:
        """Return [n, d] a copy of some rows."""


class Composer(Protocol):
    """Composes the vector of a word without a row from its subwords."""

    def compose(self, words: Sequence[str]) -> tuple[Floats, Bools]:
        """Return [n, d] vectors, and [n] whether a word has any known subword."""


@dataclass(eq=False)
class WordVectors:
    """Memory-mapped word vectors."""

    name: str
    """The name or path that the user gave."""
    digest: str
    """12 hex digits of the content; part of the signature of every metric that uses them."""
    dimensions: int
    words: Sequence[str]
    index: Index
    table: Table
    composer: Composer | None = None
    counts: Ints | None = None
    """How often each word occurs in the training texts, if known."""
    languages: frozenset[str] | None = None
    """ISO 639-1 codes of the languages of the training texts; None if unknown."""

    def sif_weights(self, words: Sequence[str], a: float) -> Floats:
        """Return [n] the weights of words by smooth inverse frequency, a / (a + p).

        p is the relative frequency of the word in the training texts (Arora et al. 2017); a word
        with p = a has half the weight of an unseen one. Without counts, all weights are 1.
        """
        if self.counts is None:
            return np.ones(len(words), np.float32)
        rows = self.index.rows([word.lower() for word in words])
        frequency = np.where(rows >= 0, self.counts[rows], 0) / max(1, int(self.counts.sum()))
        return (a / (a + frequency)).astype(np.float32)

    def find(self, words: Sequence[str]) -> tuple[Floats, Bools]:
        """Return [n, d] vectors, zeros for unknown words, and [n] whether each word is known."""
        rows = self.index.rows(words)
        lower = {i: words[i].lower() for i in np.flatnonzero(rows < 0).tolist()}
        changed = [i for i, word in lower.items() if word != words[i]]
        if changed:
            rows[changed] = self.index.rows([lower[i] for i in changed])
        has_vector = rows >= 0
        vectors = np.zeros((len(words), self.dimensions), np.float32)
        vectors[has_vector] = self.table.take(rows[has_vector])
        missing = np.flatnonzero(~has_vector).tolist()
        if missing and self.composer is not None:
            vectors[missing], has_vector[missing] = self.composer.compose(
                [words[i] for i in missing]
            )
        return vectors, has_vector
