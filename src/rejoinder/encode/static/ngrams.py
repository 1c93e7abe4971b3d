"""Words composed of character n-grams, as fastText does (Bojanowski et al. 2017).

An n-gram has no place of its own: its hash names a bucket, which it shares with others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.static.blocks import MappedMatrix
from rejoinder.encode.static.vectors import Bools, Floats, Ints
from rejoinder.text.tokenizers.base import starts_of


class Ngrams:
    """The vectors of the buckets."""

    def __init__(self, matrix: MappedMatrix, shortest: int, longest: int) -> None:
        self._matrix, self._shortest, self._longest = matrix, shortest, longest

    def compose(self, words: Sequence[str]) -> tuple[Floats, Bools]:
        """The mean over the n-grams of each word; a word shorter than any n-gram is unknown."""
        return self.compose_bytes([word.encode("utf-8", "replace") for word in words])

    def compose_bytes(self, words: Sequence[bytes]) -> tuple[Floats, Bools]:
        from rejoinder.kernels.subwords import mean_rows

        buckets, starts = self._buckets(words)
        return mean_rows(self._matrix.array, buckets, starts), np.diff(starts) > 0

    def mix_into(self, words: Sequence[bytes], rows: Floats) -> Floats:
        """The vectors of words that have a row of their own: the mean over it and the n-grams."""
        from rejoinder.kernels.subwords import mean_rows

        buckets, starts = self._buckets(words)
        return mean_rows(self._matrix.array, buckets, starts, rows)

    def _buckets(self, words: Sequence[bytes]) -> tuple[Ints, Ints]:
        found = buckets_of(words, self._shortest, self._longest, len(self._matrix.array))
        self._matrix.check(found[0])
        return found


def buckets_of(
    words: Sequence[bytes], shortest: int, longest: int, buckets: int
) -> tuple[Ints, Ints]:
    """The buckets of all n-grams of each word, end to end, and where each word's begin."""
    from rejoinder.kernels.subwords import ngram_buckets

    text: NDArray[np.uint8] = np.frombuffer(b"".join(words), np.uint8)
    return ngram_buckets(text, starts_of(map(len, words)), shortest, longest, buckets)
