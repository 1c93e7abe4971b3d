"""RIBES' alignment of words by their context, and the word order that follows from it."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True)
def _two_best(run, length, but):
    """The largest run, where it is, and the second largest, leaving position ``but`` out."""
    best, second, place = 0, 0, -1
    for j in range(length):
        if j != but:
            if run[j] > best:
                best, second, place = run[j], best, j
            elif run[j] > second:
                second = run[j]
    return best, second, place


@njit(cache=True)
def _extend(ids, at, begin, length, run, step):
    """Runs that the text before (step 1) or after (step -1) ``at`` shares with each position."""
    if step > 0:
        for j in range(length - 1, -1, -1):
            past = run[j - 1] if j > 0 else 0
            run[j] = past + 1 if ids[begin + j] == ids[at] else 0
    else:
        for j in range(length):
            past = run[j + 1] if j + 1 < length else 0
            run[j] = past + 1 if ids[begin + j] == ids[at] else 0


@njit(cache=True)
def _contexts(ids, begin, length, r_begin, r_length, step, h_run, r_run, window, place):
    """For each reply word the smallest context on one side that stands once in either text.

    An n-gram from word i on is found in the reference wherever the common run is that long.
    So it is unique once it is longer than the second longest run there, and than the longest
    run with another place of the reply.
    """
    h_run[:length], r_run[:r_length] = 0, 0
    for n in range(length):
        i = n if step > 0 else length - 1 - n
        _extend(ids, begin + i, begin, length, h_run, step)
        _extend(ids, begin + i, r_begin, r_length, r_run, step)
        other, _, _ = _two_best(h_run, length, i)
        best, second, at = _two_best(r_run, r_length, -1)
        place[i] = at
        needed = max(other, second)
        window[i] = needed if needed < best else -1


@njit(cache=True)
def _equal(ids, begin, length, r_begin, r_length):
    return length == r_length and np.all(
        ids[begin : begin + length] == ids[r_begin : r_begin + length]
    )


@njit(cache=True)
def _ranks(ids, starts, replies, references, perfect):
    pairs = replies.size
    aligned, ascending = np.zeros(pairs, np.int64), np.zeros(pairs, np.int64)
    longest, r_longest = 0, 0
    for pair in range(pairs):
        longest = max(longest, starts[replies[pair] + 1] - starts[replies[pair]])
        r_longest = max(r_longest, starts[references[pair] + 1] - starts[references[pair]])
    h_run, r_run = np.empty(longest, np.int64), np.empty(r_longest, np.int64)
    right, right_at = np.empty(longest, np.int64), np.empty(longest, np.int64)
    left, left_at = np.empty(longest, np.int64), np.empty(longest, np.int64)
    order = np.empty(longest, np.int64)

    for pair in range(pairs):
        begin, r_begin = starts[replies[pair]], starts[references[pair]]
        length = starts[replies[pair] + 1] - begin
        r_length = starts[references[pair] + 1] - r_begin
        if perfect and _equal(ids, begin, length, r_begin, r_length):
            aligned[pair], ascending[pair] = length, length * (length - 1) // 2
            continue
        _contexts(ids, begin, length, r_begin, r_length, -1, h_run, r_run, right, right_at)
        _contexts(ids, begin, length, r_begin, r_length, 1, h_run, r_run, left, left_at)
        n = 0
        for i in range(length):
            if right[i] >= 0 and (left[i] < 0 or right[i] <= left[i]):
                order[n] = right_at[i]
                n += 1
            elif left[i] >= 0:
                order[n] = left_at[i]
                n += 1
        aligned[pair] = n
        for a in range(n):
            for b in range(a + 1, n):
                ascending[pair] += order[a] < order[b]
    return aligned, ascending


def ranks(
    ids: NDArray[np.int32],
    starts: NDArray[np.int64],
    replies: NDArray[np.int64],
    references: NDArray[np.int64],
    perfect: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Aligned words of each reply, and how many pairs of them stand in the reference's order.

    A word is aligned if it stands once in either text, or else by the smallest context, to its
    right or to its left (the right one on a tie), that does. With ``perfect``, equal texts are
    aligned word for word, also where repetitions leave no unique context. Quadratic in the
    length.
    """
    return _ranks(ids, starts, replies, references, perfect)
