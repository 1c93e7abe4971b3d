"""The alignment of RIBES, of words by their contexts, and the resulting word order.

A context that occurs once in either text is found in the sorted suffixes of both: the longest
common prefix of a suffix with any other is that with one of its neighbours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels.compiled import compiled

Ints = NDArray[np.int64]


@compiled
def _sort_suffixes(text, order, rank):
    """Sort the suffixes by their prefixes of length 1, 2, 4 … (Manber and Myers 1993)."""
    size = text.size
    keys = text.copy()
    width = 1
    while True:
        order[:] = np.argsort(keys, kind="mergesort")
        rank[order[0]] = 0
        for p in range(1, size):
            rank[order[p]] = rank[order[p - 1]] + (keys[order[p]] != keys[order[p - 1]])
        if rank[order[size - 1]] == size - 1:
            return
        for i in range(size):
            following = rank[i + width] + 1 if i + width < size else 0
            keys[i] = rank[i] * (size + 1) + following
        width *= 2


@compiled
def _shared_prefixes(text, order, rank, shared):
    """Compute how many words each suffix shares with its predecessor (Kasai et al. 2001)."""
    run = 0
    shared[0] = 0
    for i in range(text.size):
        if rank[i] == 0:
            run = 0
            continue
        j = order[rank[i] - 1]
        while max(i, j) + run < text.size and text[i + run] == text[j + run]:
            run += 1
        shared[rank[i]] = run
        run = max(run - 1, 0)


@compiled
def _contexts(text, length, window, place):
    """Find the shortest context that begins at each word of the reply and occurs once in the
    reply and once in the reference; -1 if there is none.

    ``text`` is the reply (``length`` words) and the reference. The context must be longer than
    the common prefix of the word's suffix with any other suffix of the reply, and with all
    suffixes of the reference but the most similar one.
    """
    size = text.size
    order, rank = np.empty(size, np.int64), np.empty(size, np.int64)
    shared = np.empty(size, np.int64)
    _sort_suffixes(text, order, rank)
    _shared_prefixes(text, order, rank, shared)
    best, second = np.zeros(length, np.int64), np.zeros(length, np.int64)
    other = np.zeros(length, np.int64)
    for step in (1, -1):
        # common prefixes with the last suffix of the reply and the last two of the reference
        own, near, far, near_at = 0, 0, 0, -1
        for n in range(size):
            p = n if step > 0 else size - 1 - n
            if n > 0:
                run = shared[p] if step > 0 else shared[p + 1]
                own, near, far = min(own, run), min(near, run), min(far, run)
            i = order[p]
            if i < length:
                other[i] = max(other[i], own)
                if near > best[i]:
                    second[i] = max(best[i], far)
                    best[i], place[i] = near, near_at
                else:
                    second[i] = max(second[i], near)
                own = size
            elif length < i < size - 1:
                far, near, near_at = near, size, i - length - 1
    for i in range(length):
        needed = max(other[i], second[i])
        window[i] = needed if needed < best[i] else -1


@compiled
def _ascending(order, levels):
    """Return the number of ascending pairs; a Fenwick tree counts the smaller values before."""
    tree = np.zeros(levels + 1, np.int64)
    count = 0
    for value in order:
        level = value
        while level > 0:
            count += tree[level]
            level &= level - 1
        level = value + 1
        while level <= levels:
            tree[level] += 1
            level += level & -level
    return count


@compiled
def ranks(
    ids: NDArray[np.int32], starts: Ints, replies: Ints, references: Ints, perfect: bool
) -> tuple[Ints, Ints]:
    """Return the number of aligned words of each reply, and of pairs in the reference's order.

    A word is aligned if it occurs once in either text, or else by the shortest context, to its
    right or to its left (the right one on a tie), that does. With ``perfect``, equal texts are
    aligned word for word, even if repetitions leave no unique context.
    """
    pairs = replies.size
    aligned, ascending = np.zeros(pairs, np.int64), np.zeros(pairs, np.int64)
    for pair in range(pairs):
        h = ids[starts[replies[pair]] : starts[replies[pair] + 1]]
        r = ids[starts[references[pair]] : starts[references[pair] + 1]]
        if perfect and h.size == r.size and np.all(h == r):
            aligned[pair], ascending[pair] = h.size, h.size * (h.size - 1) // 2
            continue
        # both texts, each with its own end marker
        text = np.empty(h.size + r.size + 2, np.int64)
        text[h.size], text[-1] = -1, -2
        text[: h.size], text[h.size + 1 : -1] = h, r
        right, right_at = np.empty(h.size, np.int64), np.empty(h.size, np.int64)
        _contexts(text, h.size, right, right_at)
        text[: h.size], text[h.size + 1 : -1] = h[::-1], r[::-1]
        left, left_at = np.empty(h.size, np.int64), np.empty(h.size, np.int64)
        _contexts(text, h.size, left, left_at)
        order = np.empty(h.size, np.int64)
        n = 0
        for i in range(h.size):
            mirrored = h.size - 1 - i
            if right[i] >= 0 and (left[mirrored] < 0 or right[i] <= left[mirrored]):
                order[n] = right_at[i]
                n += 1
            elif left[mirrored] >= 0:
                order[n] = r.size - 1 - left_at[mirrored]
                n += 1
        aligned[pair] = n
        ascending[pair] = _ascending(order[:n], r.size)
    return aligned, ascending
