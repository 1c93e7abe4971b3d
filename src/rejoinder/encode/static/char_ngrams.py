"""Vectors of words composed of character n-grams, as in fastText (Bojanowski et al. 2017).

An n-gram has no row of its own: its hash selects a bucket, which it shares with others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.static.mapped_files import MappedMatrix
from rejoinder.encode.static.word_vectors import Bools, Floats, Ints
from rejoinder.files.checked import check_values
from rejoinder.text.tokenizers.tokenizer import starts_of


class NgramComposer:
    """Composes vectors of words from the vectors of buckets of n-grams."""

    def __init__(self, matrix: MappedMatrix, min_n: int, max_n: int) -> None:
        self._matrix, self._shortest, self._longest = matrix, min_n, max_n

    def compose(self, words: Sequence[str]) -> tuple[Floats, Bools]:
        """Return the mean over the n-grams of each word, and whether it has any.

        A word that is shorter than any n-gram has none.
        """
        return self.compose_bytes([word.encode("utf-8", "replace") for word in words])

    def compose_bytes(self, words: Sequence[bytes]) -> tuple[Floats, Bools]:
        """The same for words in UTF-8."""
        from rejoinder.kernels.subwords import mean_rows

        buckets, starts = self._buckets(words)
        vectors = mean_rows(self._matrix.array, buckets, starts)
        check_values(self._matrix.path, vectors, finite=True)
        return vectors, np.diff(starts) > 0

    def mean_with_rows(self, words: Sequence[bytes], rows: Floats) -> Floats:
        """Return for each word the mean over its own row and its n-grams."""
        from rejoinder.kernels.subwords import mean_rows

        buckets, starts = self._buckets(words)
        return mean_rows(self._matrix.array, buckets, starts, rows)

    def _buckets(self, words: Sequence[bytes]) -> tuple[Ints, Ints]:
        buckets, starts = buckets_of(words, self._shortest, self._longest, len(self._matrix.array))
        self._matrix.check(buckets)
        return buckets, starts


def buckets_of(words: Sequence[bytes], min_n: int, max_n: int, buckets: int) -> tuple[Ints, Ints]:
    """Return the buckets of all n-grams, word after word, and [n + 1] where each word begins."""
    from rejoinder.kernels.subwords import ngram_buckets

    text: NDArray[np.uint8] = np.frombuffer(b"".join(words), np.uint8)
    return ngram_buckets(text, starts_of(map(len, words)), min_n, max_n, buckets)
