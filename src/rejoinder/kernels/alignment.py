"""Longest common subsequence and edit distance of many pairs of texts, two rows at a time."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True)
def _longest(starts, texts):
    longest = 0
    for text in texts:
        longest = max(longest, starts[text + 1] - starts[text])
    return longest


@njit(cache=True)
def _lcs(ids, starts, replies, references):
    lengths = np.empty(replies.size, np.int64)
    row = np.empty(_longest(starts, references) + 1, np.int64)
    for pair in range(replies.size):
        begin, end = starts[replies[pair]], starts[replies[pair] + 1]
        r_begin, r_end = starts[references[pair]], starts[references[pair] + 1]
        width = r_end - r_begin
        row[: width + 1] = 0
        for i in range(begin, end):
            diagonal = row[0]
            for j in range(1, width + 1):
                above = row[j]
                if ids[i] == ids[r_begin + j - 1]:
                    row[j] = diagonal + 1
                else:
                    row[j] = max(above, row[j - 1])
                diagonal = above
        lengths[pair] = row[width]
    return lengths


@njit(cache=True)
def _levenshtein(ids, starts, replies, references):
    distances = np.empty(replies.size, np.int64)
    row = np.empty(_longest(starts, references) + 1, np.int64)
    for pair in range(replies.size):
        begin, end = starts[replies[pair]], starts[replies[pair] + 1]
        r_begin, r_end = starts[references[pair]], starts[references[pair] + 1]
        width = r_end - r_begin
        for j in range(width + 1):
            row[j] = j
        for i in range(begin, end):
            diagonal = row[0]
            row[0] += 1
            for j in range(1, width + 1):
                above = row[j]
                change = diagonal + (ids[i] != ids[r_begin + j - 1])
                row[j] = min(change, above + 1, row[j - 1] + 1)
                diagonal = above
        distances[pair] = row[width]
    return distances


def lcs(
    ids: NDArray[np.int32],
    starts: NDArray[np.int64],
    replies: NDArray[np.int64],
    references: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Length of the longest common subsequence of each reply and its one reference."""
    return _lcs(ids, starts, replies, references)


def levenshtein(
    ids: NDArray[np.int32],
    starts: NDArray[np.int64],
    replies: NDArray[np.int64],
    references: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Fewest insertions, deletions and substitutions that turn each reply into its reference."""
    return _levenshtein(ids, starts, replies, references)
