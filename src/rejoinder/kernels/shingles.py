"""Near-duplicates of a small set of texts among very many: exact Jaccard, pruned by rarity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels.compiled import compiled

Codes = NDArray[np.int32]
Ints = NDArray[np.int64]


@compiled
def _grams(codes, begin, end, size, out):
    """Write the sorted distinct hashes of the character n-grams; return their number."""
    count = 0
    for i in range(begin, end - size + 1):
        key = np.uint64(14695981039346656037)
        for k in range(size):
            key = (key ^ np.uint64(codes[i + k])) * np.uint64(1099511628211)
        out[count] = np.int64(key >> np.uint64(1))
        count += 1
    out[:count].sort()
    distinct = 0
    for i in range(count):
        if i == 0 or out[i] != out[i - 1]:
            out[distinct] = out[i]
            distinct += 1
    return distinct


@compiled
def _gram_sets(codes, starts, size):
    longest = 0
    for i in range(starts.size - 1):
        longest = max(longest, starts[i + 1] - starts[i])
    buffer = np.empty(max(longest, 1), np.int64)
    firsts = np.zeros(starts.size, np.int64)
    for i in range(starts.size - 1):
        firsts[i + 1] = firsts[i] + _grams(codes, starts[i], starts[i + 1], size, buffer)
    sets = np.empty(firsts[-1], np.int64)
    for i in range(starts.size - 1):
        count = _grams(codes, starts[i], starts[i + 1], size, buffer)
        sets[firsts[i] : firsts[i] + count] = buffer[:count]
    return sets, firsts


@compiled
def _shared(a, b):
    """Return the size of the intersection of two sorted sets."""
    i, j, count = 0, 0, 0
    while i < a.size and j < b.size:
        if a[i] == b[j]:
            count += 1
            i += 1
            j += 1
        elif a[i] < b[j]:
            i += 1
        else:
            j += 1
    return count


@compiled
def _nearest(codes, starts, size, threshold, sets, firsts, keys, places, owners):
    best = np.full(starts.size - 1, -1, np.int64)
    longest = 0
    for i in range(starts.size - 1):
        longest = max(longest, starts[i + 1] - starts[i])
    own = np.empty(max(longest, 1), np.int64)
    compared_with = np.full(firsts.size - 1, -1, np.int64)
    for i in range(starts.size - 1):
        count = _grams(codes, starts[i], starts[i + 1], size, own)
        if count == 0:
            continue
        slots = np.searchsorted(keys, own[:count])
        frequency = np.zeros(count, np.int64)
        for g in range(count):
            if slots[g] < keys.size and keys[slots[g]] == own[g]:
                frequency[g] = places[slots[g] + 1] - places[slots[g]]
        order = np.argsort(frequency)
        # J >= t needs t·|x| shared grams, so one of any |x| - ceil(t·|x|) + 1 must be shared
        prefix = count - int(np.ceil(threshold * count)) + 1
        highest = 0.0
        for p in range(min(prefix, count)):
            g = order[p]
            if frequency[g] == 0:
                continue
            for place in range(places[slots[g]], places[slots[g] + 1]):
                other = owners[place]
                if compared_with[other] == i:
                    continue
                compared_with[other] = i
                theirs = sets[firsts[other] : firsts[other + 1]]
                if min(count, theirs.size) < threshold * max(count, theirs.size):
                    continue
                shared = _shared(own[:count], theirs)
                jaccard = shared / (count + theirs.size - shared)
                if jaccard >= threshold and jaccard > highest:
                    highest, best[i] = jaccard, other
    return best


def gram_sets(codes: Codes, starts: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the n-grams of each text as sorted hashes, concatenated, and their bounds."""
    return _gram_sets(codes, starts, size)


def nearest(
    codes: Codes, starts: Ints, size: int, threshold: float, index: tuple[Ints, ...]
) -> Ints:
    """Return for each text the indexed text with the highest Jaccard similarity, or -1.

    Similarities below the threshold do not count. ``index`` is (sets, firsts, keys, places,
    owners): the n-grams of each indexed text, and for each n-gram the texts that have it.
    """
    return _nearest(codes, starts, size, threshold, *index)
