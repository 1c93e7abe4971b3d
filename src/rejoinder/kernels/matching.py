"""Match every token with its most similar token in the other text (greedy matching, BERTScore).

A dot product is summed in the same order for all pairs, so that the score of a pair does not
depend on the other pairs of its batch, as with one matrix product for the whole batch.
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
    lowest: float,
) -> tuple[Floats, Floats]:
    """Return [n] the weighted averages of max_j w · l_i·r_j over the tokens i of the left text,
    and of max_i w · l_i·r_j over the tokens j of the right text; w is the weight of the pair.

    Token t has the unit vector ``vectors[place[t]]`` and the weight ``importance[t]`` in the
    average; tokens of weight 0 can still be matched by others. Both averages are 0 if all weights
    of a side are 0. No match counts less than ``lowest``.
    """
    pairs, dimensions = len(left), vectors.shape[1]
    from_left, from_right = np.zeros(pairs), np.zeros(pairs)
    longest = 0
    for text in right:
        longest = max(longest, starts[text + 1] - starts[text])
    best_right = np.empty(longest, np.float32)
    for pair in range(pairs):
        a, a_end = starts[left[pair]], starts[left[pair] + 1]
        b, b_end = starts[right[pair]], starts[right[pair] + 1]
        a_total, b_total = importance[a:a_end].sum(), importance[b:b_end].sum()
        if a_total <= 0 or b_total <= 0:
            continue
        scale = np.float32(weight[pair])
        best_right[: b_end - b] = lowest
        sum_left = 0.0
        for i in range(a, a_end):
            here = place[i]
            best = np.float32(lowest)
            for j in range(b, b_end):
                there = place[j]
                dot = np.float32(0)
                for k in range(dimensions):
                    dot += vectors[here, k] * vectors[there, k]
                dot *= scale
                best = max(best, dot)
                best_right[j - b] = max(best_right[j - b], dot)
            sum_left += importance[i] * best
        sum_right = 0.0
        for j in range(b, b_end):
            sum_right += importance[j] * best_right[j - b]
        from_left[pair] = sum_left / a_total
        from_right[pair] = sum_right / b_total
    return from_left, from_right
