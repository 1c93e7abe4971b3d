"""Every token finds its most similar token on the other side: greedy matching and BERTScore.

A dot product adds up in the same order wherever its tokens stand, so a pair's result does not
depend on its neighbours, as it would with a matrix product of the whole batch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels.compiled import regrouped

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]
Codes = NDArray[np.int32]
Ints = NDArray[np.int64]


@regrouped
def match(
    vectors: Vectors,
    place: Codes,
    starts: Ints,
    importance: Floats,
    left: Ints,
    right: Ints,
    weight: Floats,
    least: float,
) -> tuple[Floats, Floats]:
    """[n] averages of max_j w · l_i·r_j over the tokens i of the left text, and of
    max_i w · l_i·r_j over the tokens j of the right one; w is the weight of the pair.

    Token t of a text has the vector ``vectors[place[t]]`` of length 1, and counts with
    ``importance[t]``; one of no importance can still be found by others. Where a side has no
    token of importance, both averages are 0. No match counts less than ``least``.
    """
    pairs, dimensions = len(left), vectors.shape[1]
    from_left, from_right = np.zeros(pairs), np.zeros(pairs)
    longest = 0
    for text in right:
        longest = max(longest, starts[text + 1] - starts[text])
    found = np.empty(longest, np.float32)
    for pair in range(pairs):
        a, a_end = starts[left[pair]], starts[left[pair] + 1]
        b, b_end = starts[right[pair]], starts[right[pair] + 1]
        a_total, b_total = importance[a:a_end].sum(), importance[b:b_end].sum()
        if a_total <= 0 or b_total <= 0:
            continue
        scale = np.float32(weight[pair])
        found[: b_end - b] = least
        sum_left = 0.0
        for i in range(a, a_end):
            here = place[i]
            best = np.float32(least)
            for j in range(b, b_end):
                there = place[j]
                dot = np.float32(0)
                for k in range(dimensions):
                    dot += vectors[here, k] * vectors[there, k]
                dot *= scale
                best = max(best, dot)
                found[j - b] = max(found[j - b], dot)
            sum_left += importance[i] * best
        sum_right = 0.0
        for j in range(b, b_end):
            sum_right += importance[j] * found[j - b]
        from_left[pair] = sum_left / a_total
        from_right[pair] = sum_right / b_total
    return from_left, from_right
