"""Find replies that nearly repeat another one, in any language.

Texts are compared without case, punctuation, white space and differences of Unicode forms. The
similarity of two texts is the share of character bigrams that they have in common (Dice 1945):

    2 |A and B| / (|A| + |B|)

with the multisets A and B of their bigrams. It is 1 if a comma was added, above .9 if a word was
put elsewhere, and about .85 if one word of eight was replaced. Texts of fewer than ten characters
have few bigrams, so they are similar (1) only if they are equal, else 0.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MIN_CHARACTERS = 10
"""Shorter texts are compared for equality only."""


@lru_cache(maxsize=50_000)
def normal_form(text: str) -> str:
    """Return the characters of a text that matter when it is compared with another.

    >>> normal_form("I think so!") == normal_form("i think so")
    True
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = "".join(each for each in folded if _matters(unicodedata.category(each)))
    return kept or "".join(folded.split())


def _matters(category: str) -> bool:
    return category[0] in "LNM" or category == "So"  # letters, digits, accents, emoji


class Texts:
    """Texts that a new one may repeat."""

    def __init__(self, texts: Sequence[str]) -> None:
        forms = [normal_form(text) for text in texts]
        self._forms = np.array(forms, object)
        self._sizes = np.array([len(form) for form in forms], np.int64)
        bigrams = [_bigrams(form) for form in forms]
        self._bigrams = np.concatenate([np.zeros(0, np.int64), *bigrams])
        self._owner = np.repeat(np.arange(len(forms)), [each.size for each in bigrams])

    def similarities(self, text: str, limit: float = 0.0) -> Floats:
        """Return the similarity of a text with each of these; 0 for those that cannot reach
        ``limit``."""
        form = normal_form(text)
        equal = np.array([each == form for each in self._forms], np.float64)
        if len(form) < MIN_CHARACTERS:
            return equal
        own, counts = np.unique(_bigrams(form), return_counts=True)
        total = np.maximum(self._sizes - 1 + len(form) - 1, 1)
        reachable = 2 * np.minimum(self._sizes - 1, len(form) - 1) / total
        near = np.flatnonzero((self._sizes >= MIN_CHARACTERS) & (reachable >= limit))
        row = np.full(self._sizes.size, -1)
        row[near] = np.arange(near.size)
        inside = row[self._owner] >= 0
        bigrams, rows = self._bigrams[inside], row[self._owner[inside]]
        column = np.minimum(np.searchsorted(own, bigrams), own.size - 1)
        shared = own[column] == bigrams
        cells = rows[shared] * own.size + column[shared]
        found = np.bincount(cells, minlength=near.size * own.size).reshape(near.size, own.size)
        similarity = np.zeros(self._sizes.size)
        similarity[near] = 2 * np.minimum(found, counts).sum(axis=1) / total[near]
        return np.maximum(similarity, equal)


def similarity(first: str, second: str) -> float:
    """Return how similar two texts are, from 0 to 1.

    >>> similarity("Yes, I do like it.", "yes I do, like it")
    1.0
    """
    return float(Texts([second]).similarities(first)[0])


def _bigrams(form: str) -> NDArray[np.int64]:
    codes = np.frombuffer(form.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)
    return np.asarray(codes[:-1] << 21 | codes[1:], np.int64)
