"""Longest common subsequence and edit distance of many pairs of texts, bit-parallel.

Neighbouring cells in a column of the dynamic programming table differ by at most one, so 64 of
them fit into the bits of one number (Myers 1999; Hyyrö 2003 and 2004). The reference is split into
blocks of 64 words; each block is compared with the whole reply, and its carry at each word of the
reply is passed to the next block. So only the words of one block need a mask at a time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels.compiled import compiled

Ints = NDArray[np.int64]

ONE, ALL = np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)


@compiled
def _longest(starts, texts):
    longest = 0
    for text in texts:
        longest = max(longest, starts[text + 1] - starts[text])
    return longest


@compiled
def _mark(ids, begin, end, masks):
    """Set in the mask of each word the bits of its positions in a block."""
    for k in range(begin, end):
        masks[ids[k]] |= ONE << np.uint64(k - begin)


@compiled
def _clear(ids, begin, end, masks):
    for k in range(begin, end):
        masks[ids[k]] = 0


@compiled
def lcs(ids: NDArray[np.int32], starts: Ints, replies: Ints, references: Ints) -> Ints:
    """Return the length of the longest common subsequence of each reply and its reference.

    A zero bit of ``column`` is a position at which the length grows (Hyyrö 2004).
    """
    lengths = np.zeros(replies.size, np.int64)
    carry = np.empty(_longest(starts, replies), np.uint64)
    masks = np.zeros(ids.max() + 1 if ids.size else 0, np.uint64)
    for pair in range(replies.size):
        begin, end = starts[replies[pair]], starts[replies[pair] + 1]
        r_begin, r_end = starts[references[pair]], starts[references[pair] + 1]
        carry[: end - begin] = 0
        for block in range(r_begin, r_end, 64):
            block_end = min(block + 64, r_end)
            _mark(ids, block, block_end, masks)
            column = ALL
            for i in range(begin, end):
                mask = masks[ids[i]]
                added = column + (column & mask)
                total = added + carry[i - begin]
                carry[i - begin] = np.uint64((added < column) | (total < added))
                column = total | (column & ~mask)
            for bit in range(block_end - block):
                lengths[pair] += ((column >> np.uint64(bit)) & ONE) == 0
            _clear(ids, block, block_end, masks)
    return lengths


@compiled
def levenshtein(ids: NDArray[np.int32], starts: Ints, replies: Ints, references: Ints) -> Ints:
    """Return the edit distance (Levenshtein) of each reply and its reference.

    ``up`` and ``down`` mark cells that are one more or one less than the cell above them in the
    column, ``right`` and ``left`` the same for the previous cell of the row (Hyyrö 2003).
    """
    distances = np.empty(replies.size, np.int64)
    step = np.empty(_longest(starts, replies), np.int8)
    masks = np.zeros(ids.max() + 1 if ids.size else 0, np.uint64)
    for pair in range(replies.size):
        begin, end = starts[replies[pair]], starts[replies[pair] + 1]
        r_begin, r_end = starts[references[pair]], starts[references[pair] + 1]
        step[: end - begin] = 1
        for block in range(r_begin, r_end, 64):
            block_end = min(block + 64, r_end)
            _mark(ids, block, block_end, masks)
            last = ONE << np.uint64(block_end - block - 1)
            up, down = ALL, np.uint64(0)
            for i in range(begin, end):
                above = step[i - begin]
                equal = masks[ids[i]]
                vertical = equal | down
                if above < 0:
                    equal |= ONE
                horizontal = (((equal & up) + up) ^ up) | equal
                right, left = down | ~(horizontal | up), up & horizontal
                step[i - begin] = np.int8((right & last) != 0) - np.int8((left & last) != 0)
                right, left = right << ONE, left << ONE
                if above < 0:
                    left |= ONE
                elif above > 0:
                    right |= ONE
                up, down = left | ~(vertical | right), right & vertical
            _clear(ids, block, block_end, masks)
        distances[pair] = r_end - r_begin + step[: end - begin].astype(np.int64).sum()
    return distances
