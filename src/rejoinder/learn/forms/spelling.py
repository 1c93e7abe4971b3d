"""How texts are written: which words two of them share, rare words and their parts foremost.

Averages of word vectors learn what goes together, but hardly see a name that stands in both of two
texts and nowhere else, though that tells more than anything. So texts are also read as the
character n-grams of their words, each word weighed by its rarity, and each n-gram hashed to a place
and a sign (Weinberger et al. 2009): a scalar product then is about what two texts share, in any
language and for words that nobody has seen before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from rejoinder.encode.static.ngrams import buckets_of
from rejoinder.retrieve.dense import StaticVectors

SHORTEST, LONGEST = 2, 3
"""Characters of an n-gram, the ends of the word counted: so a word of one is one, too."""


def spelled(texts: Sequence[str], source: StaticVectors, places: int) -> Any:
    """[n, places] sparse rows of length 1, without an entry for a text that has no words."""
    tokens = source.tokens(list(texts))
    weights = source.weights(tokens.words)
    used = sparse.csr_matrix(
        (weights[tokens.ids], tokens.ids, tokens.starts), shape=(len(texts), len(tokens.words))
    )
    rows = used @ _written(tokens.words, places)
    lengths = np.sqrt(rows.multiply(rows).sum(axis=1)).A1
    return sparse.diags(np.divide(1, lengths, where=lengths > 0, out=lengths)) @ rows


def _written(words: Sequence[str], places: int) -> Any:
    """[words, places] the n-grams of each word."""
    encoded = [word.encode("utf-8", "replace") for word in words]
    found, starts = buckets_of(encoded, SHORTEST, LONGEST, 2 * places)
    signs = (1 - 2 * (found % 2)).astype(np.float32)
    made = sparse.csr_matrix((signs, found // 2, starts), shape=(len(words), places))
    made.sum_duplicates()
    return made
