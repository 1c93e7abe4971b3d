"""Buckets of the character n-grams of words, hashed as in fastText, and means of their rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels.compiled import compiled

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

_BEGIN, _END = ord("<"), ord(">")


@compiled
def _byte(text, begin, end, i):
    """Return byte i of a word between < and >."""
    if i == 0:
        return np.uint8(_BEGIN)
    if begin + i - 1 == end:
        return np.uint8(_END)
    return text[begin + i - 1]


@compiled
def _ngrams(text, starts, min_n, max_n, buckets, out, counts):
    """Count the n-grams of each word, and write their buckets unless ``out`` is empty."""
    total = 0
    writing = out.size > 0
    for word in range(starts.size - 1):
        begin, end = starts[word], starts[word + 1]
        size = end - begin + 2
        before = total
        for i in range(size):
            if _byte(text, begin, end, i) & 0xC0 == 0x80:
                continue  # in the middle of a character
            key, j, n = np.uint32(2166136261), i, 1
            while j < size and n <= max_n:
                # bytes are signed in fastText, and extended with their sign
                byte = np.uint32(np.int8(_byte(text, begin, end, j)))
                key = np.uint32((key ^ byte) * np.uint32(16777619))
                j += 1
                while j < size and _byte(text, begin, end, j) & 0xC0 == 0x80:
                    byte = np.uint32(np.int8(_byte(text, begin, end, j)))
                    key = np.uint32((key ^ byte) * np.uint32(16777619))
                    j += 1
                if n >= min_n and not (n == 1 and (i == 0 or j == size)):
                    if writing:
                        out[total] = np.int64(key % np.uint32(buckets))
                    total += 1
                n += 1
        counts[word] = total - before
    return total


@compiled
def _means(matrix, buckets, starts, own, with_own, out):
    for word in range(starts.size - 1):
        count = starts[word + 1] - starts[word]
        if with_own:
            count += 1
            for k in range(matrix.shape[1]):
                out[word, k] = own[word, k]
        for i in range(starts[word], starts[word + 1]):
            row = buckets[i]
            for k in range(matrix.shape[1]):
                out[word, k] += matrix[row, k]
        if count:
            for k in range(matrix.shape[1]):
                out[word, k] /= np.float32(count)


def ngram_buckets(
    text: Bytes, starts: Ints, min_n: int, max_n: int, buckets: int
) -> tuple[Ints, Ints]:
    """Return the buckets of all n-grams, word after word, and [n + 1] where each word begins."""
    counts = np.zeros(starts.size - 1, np.int64)
    total = _ngrams(text, starts, min_n, max_n, buckets, np.empty(0, np.int64), counts)
    out = np.empty(total, np.int64)
    if total:
        _ngrams(text, starts, min_n, max_n, buckets, out, counts)
    return out, np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


def mean_rows(matrix: Floats, rows: Ints, starts: Ints, own: Floats | None = None) -> Floats:
    """Return for each word the mean over some rows of a matrix, and over its own row if given."""
    out = np.zeros((starts.size - 1, matrix.shape[1]), np.float32)
    own_rows = np.zeros((0, 0), np.float32) if own is None else own
    _means(matrix, rows, starts, own_rows, own is not None, out)
    return out
