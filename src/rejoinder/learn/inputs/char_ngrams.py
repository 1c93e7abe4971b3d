"""Hashed character n-grams: which words two texts share, with more weight on rare words.

Averaged word vectors capture what texts are about, but hardly show a rare name that occurs in both
of them, though that is strong evidence. So texts are also represented by the character n-grams of
their words, each word weighted by its rarity and each n-gram hashed to a bucket and a sign
(Weinberger et al. 2009, "Feature hashing for large scale multitask learning"): a dot product then
estimates what two texts share, in any language and for words that were never seen before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from rejoinder.encode.static.char_ngrams import buckets_of
from rejoinder.encode.text_encoders import WordVectorEncoder

MIN_N, MAX_N = 2, 3
"""Lengths of n-grams, with marks at both ends of a word: so a word of one character has one."""


def char_ngrams(texts: Sequence[str], encoder: WordVectorEncoder, buckets: int) -> Any:
    """[n, buckets] return sparse rows of length 1; an empty row for a text without words."""
    tokens = encoder.tokens(list(texts))
    weights = encoder.weights(tokens.words)
    words_of_texts = sparse.csr_matrix(
        (weights[tokens.ids], tokens.ids, tokens.starts), shape=(len(texts), len(tokens.words))
    )
    rows = words_of_texts @ _word_ngrams(tokens.words, buckets)
    lengths = np.sqrt(rows.multiply(rows).sum(axis=1)).A1
    return sparse.diags(np.divide(1, lengths, where=lengths > 0, out=lengths)) @ rows


def _word_ngrams(words: Sequence[str], buckets: int) -> Any:
    """[words, buckets] return the signed n-grams of each word."""
    encoded = [word.encode("utf-8", "replace") for word in words]
    hashed, starts = buckets_of(encoded, MIN_N, MAX_N, 2 * buckets)
    signs = (1 - 2 * (hashed % 2)).astype(np.float32)
    matrix = sparse.csr_matrix((signs, hashed // 2, starts), shape=(len(words), buckets))
    matrix.sum_duplicates()
    return matrix
