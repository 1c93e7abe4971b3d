"""Clipped n-gram matches, exact and linear in the length of the texts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels.compiled import compiled


@compiled
def _child(table_keys, table_nodes, mask, key):
    """Return the slot of ``key`` in an open-addressing table, or the free slot for it."""
    slot = ((key * np.int64(-7046029254386353131)) >> np.int64(20)) & mask
    while table_nodes[slot] >= 0 and table_keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@compiled
def overlap(
    ids: NDArray[np.int32],
    starts: NDArray[np.int64],
    vocabulary: int,
    replies: NDArray[np.int64],
    references: NDArray[np.int64],
    first: NDArray[np.int64],
    weights: NDArray[np.float64],
    order: int,
) -> NDArray[np.float64]:
    """Return [replies, order] the weighted clipped n-gram matches of each reply, n = 1 … order.

    Σ over the distinct n-grams g of the reply of  max over references j that contain g of
    w_j · min(#g(reply), #g(reference j)); with unit weights, BLEU's clipped counts.

    The n-grams of the reply form a trie whose edges (node, token) are in a hash table under an
    exact 64-bit key, so there are no collisions; a reference is looked up in the trie from each
    of its positions. ``replies`` and ``references`` are indices of texts; the references of reply
    i are ``references[first[i]:first[i + 1]]``.
    """
    items = replies.size
    matches = np.zeros((items, order))
    longest = 0
    for i in range(items):
        longest = max(longest, starts[replies[i] + 1] - starts[replies[i]])
    nodes = longest * order + 1
    size = 8
    while size < 2 * nodes:
        size *= 2
    keys, table = np.empty(size, np.int64), np.empty(size, np.int64)
    in_reply, in_reference = np.empty(nodes, np.int64), np.zeros(nodes, np.int64)
    best, depth = np.empty(nodes), np.empty(nodes, np.int64)

    for i in range(items):
        begin, end = starts[replies[i]], starts[replies[i] + 1]
        mask = 8
        while mask < 2 * ((end - begin) * order + 1):
            mask *= 2
        mask -= 1
        table[: mask + 1] = -1
        used = 1
        for position in range(begin, end):
            node = 0
            for n in range(min(order, end - position)):
                key = node * vocabulary + ids[position + n]
                slot = _child(keys, table, mask, key)
                if table[slot] < 0:
                    keys[slot], table[slot] = key, used
                    in_reply[used], depth[used], best[used] = 0, n, -np.inf
                    used += 1
                node = table[slot]
                in_reply[node] += 1
        for j in range(first[i], first[i + 1]):
            r_begin, r_end = starts[references[j]], starts[references[j] + 1]
            for position in range(r_begin, r_end):
                node = 0
                for n in range(min(order, r_end - position)):
                    slot = _child(keys, table, mask, node * vocabulary + ids[position + n])
                    if table[slot] < 0:
                        break
                    node = table[slot]
                    in_reference[node] += 1
            for node in range(1, used):
                if in_reference[node] > 0:
                    shared = min(in_reply[node], in_reference[node])
                    best[node] = max(best[node], weights[j] * shared)
                    in_reference[node] = 0
        for node in range(1, used):
            if best[node] > -np.inf:
                matches[i, depth[node]] += best[node]
    return matches
