"""Longest common subsequence and edit distance of many pairs of texts, 64 words at a time.

A column of the table of dynamic programming differs from its neighbour by little, so 64 of its
cells fit into the bits of one number (Myers 1999; Hyyrö 2003 and 2004). The reference is cut
into pieces of 64 words; each piece meets the whole reply, and hands what it passes down at each
word of the reply to the next piece. So only one piece's words need a mask at a time.
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
    """Set in the mask of each word the bits of the places where it stands in a piece."""
    for k in range(begin, end):
        masks[ids[k]] |= ONE << np.uint64(k - begin)


@compiled
def _clear(ids, begin, end, masks):
    for k in range(begin, end):
        masks[ids[k]] = 0


@compiled
def lcs(ids: NDArray[np.int32], starts: Ints, replies: Ints, references: Ints) -> Ints:
    """Length of the longest common subsequence of each reply and its one reference.

    A zero bit of ``column`` is a place at which the length grows (Hyyrö 2004).
    """
    lengths = np.zeros(replies.size, np.int64)
    carry = np.empty(_longest(starts, replies), np.uint64)
    masks = np.zeros(ids.max() + 1 if ids.size else 0, np.uint64)
    for pair in range(replies.size):
        begin, end = starts[replies[pair]], starts[replies[pair] + 1]
        r_begin, r_end = starts[references[pair]], starts[references[pair] + 1]
        carry[: end - begin] = 0
        for piece in range(r_begin, r_end, 64):
            piece_end = min(piece + 64, r_end)
            _mark(ids, piece, piece_end, masks)
            column = ALL
            for i in range(begin, end):
                mask = masks[ids[i]]
                added = column + (column & mask)
                total = added + carry[i - begin]
                carry[i - begin] = np.uint64((added < column) | (total < added))
                column = total | (column & ~mask)
            for bit in range(piece_end - piece):
                lengths[pair] += ((column >> np.uint64(bit)) & ONE) == 0
            _clear(ids, piece, piece_end, masks)
    return lengths


@compiled
def levenshtein(ids: NDArray[np.int32], starts: Ints, replies: Ints, references: Ints) -> Ints:
    """Fewest insertions, deletions and substitutions that turn each reply into its reference.

    ``up`` and ``down`` tell where a cell of the column is one more or one less than the cell above
    it, ``right`` and ``left`` the same of a cell and the one before it in its row (Hyyrö 2003).
    """
    distances = np.empty(replies.size, np.int64)
    step = np.empty(_longest(starts, replies), np.int8)
    masks = np.zeros(ids.max() + 1 if ids.size else 0, np.uint64)
    for pair in range(replies.size):
        begin, end = starts[replies[pair]], starts[replies[pair] + 1]
        r_begin, r_end = starts[references[pair]], starts[references[pair] + 1]
        step[: end - begin] = 1
        for piece in range(r_begin, r_end, 64):
            piece_end = min(piece + 64, r_end)
            _mark(ids, piece, piece_end, masks)
            last = ONE << np.uint64(piece_end - piece - 1)
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
            _clear(ids, piece, piece_end, masks)
        distances[pair] = r_end - r_begin + step[: end - begin].astype(np.int64).sum()
    return distances
