"""The alignment of METEOR: greedy, in stages, from the end of the texts, in linear time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels.compiled import compiled


@compiled
def _push_positions(keys, begin, length, taken, latest, before):
    """Build a stack of the free reference positions of each key, the last position on top."""
    for j in range(length):
        if not taken[j]:
            before[j] = latest[keys[begin + j]]
            latest[keys[begin + j]] = j


@compiled
def _clear(keys, begin, length, latest):
    for j in range(length):
        latest[keys[begin + j]] = -1


@compiled
def _match_equal(keys, begin, length, r_begin, r_length, partner, taken, latest, before):
    """Match each free reply token, last first, with the last free reference token of its key."""
    _push_positions(keys, r_begin, r_length, taken, latest, before)
    for i in range(length - 1, -1, -1):
        if partner[i] < 0:
            key = keys[begin + i]
            j = latest[key]
            if j >= 0:
                partner[i], taken[j], latest[key] = j, True, before[j]
    _clear(keys, r_begin, r_length, latest)


@compiled
def _match_synonyms(
    keys, first, synonyms, begin, length, r_begin, r_length, partner, taken, latest, before
):
    """Match each free reply token, last first, with the rightmost free token among its synonyms."""
    _push_positions(keys, r_begin, r_length, taken, latest, before)
    for i in range(length - 1, -1, -1):
        if partner[i] < 0:
            own = keys[begin + i]
            best, key = -1, -1
            for s in range(first[own], first[own + 1]):
                if latest[synonyms[s]] > best:
                    best, key = latest[synonyms[s]], synonyms[s]
            if best >= 0:
                partner[i], taken[best], latest[key] = best, True, before[best]
    _clear(keys, r_begin, r_length, latest)


@compiled
def align(
    ids: NDArray[np.int32],
    stems: NDArray[np.int32],
    starts: NDArray[np.int64],
    first: NDArray[np.int64],
    synonyms: NDArray[np.int64],
    keys: int,
    replies: NDArray[np.int64],
    references: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of matched tokens, and of chunks, of each reply and its one reference.

    ``stems`` is parallel to ``ids``. Stem s has the synonyms ``synonyms[first[s]:first[s + 1]]``;
    an empty array means no synonym stage. All ids and stems are below ``keys``.

    A stage takes one pass over either text, because the free reference positions of each word
    are linked from the last to the first, in the order in which they are matched.
    """
    pairs = replies.size
    matches, chunks = np.zeros(pairs, np.int64), np.zeros(pairs, np.int64)
    longest, r_longest = 0, 0
    for pair in range(pairs):
        longest = max(longest, starts[replies[pair] + 1] - starts[replies[pair]])
        r_longest = max(r_longest, starts[references[pair] + 1] - starts[references[pair]])
    latest = np.full(keys, -1, np.int64)
    before = np.empty(r_longest, np.int64)
    taken, partner = np.empty(r_longest, np.bool_), np.empty(longest, np.int64)

    for pair in range(pairs):
        begin, r_begin = starts[replies[pair]], starts[references[pair]]
        length = starts[replies[pair] + 1] - begin
        r_length = starts[references[pair] + 1] - r_begin
        partner[:length], taken[:r_length] = -1, False
        _match_equal(ids, begin, length, r_begin, r_length, partner, taken, latest, before)
        _match_equal(stems, begin, length, r_begin, r_length, partner, taken, latest, before)
        if synonyms.size:
            _match_synonyms(
                stems,
                first,
                synonyms,
                begin,
                length,
                r_begin,
                r_length,
                partner,
                taken,
                latest,
                before,
            )
        previous = -2
        for i in range(length):
            if partner[i] < 0:
                previous = -2
                continue
            matches[pair] += 1
            if partner[i] != previous + 1:
                chunks[pair] += 1
            previous = partner[i]
    return matches, chunks
