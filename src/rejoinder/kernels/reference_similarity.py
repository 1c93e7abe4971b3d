"""Similarity of texts to references that people have rated."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels.compiled import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

FEATURES = 6
"""Per metric: maximum, mean of the three highest, and mean; over good, then over bad references."""


@compiled
def nearest_reference_mean(values: Floats, score: Floats, first: Ints, m: int) -> Floats:
    """Return [n] the mean of value · score over the m highest values of each segment.

    A segment with fewer values uses all. Equal values that compete for the last places share
    them, so that the result does not depend on their order.
    """
    result = np.empty(len(first) - 1)
    for segment in range(len(result)):
        begin, end = first[segment], first[segment + 1]
        order = begin + np.argsort(-values[begin:end])
        places = min(m, end - begin)
        last = values[order[places - 1]]
        total, tied, sure = 0.0, 0.0, 0
        ties = 0
        for place in order:
            if values[place] > last:
                total += values[place] * score[place]
                sure += 1
            elif values[place] == last:
                tied += score[place]
                ties += 1
        total += (places - sure) * last * (tied / ties)
        result[segment] = total / places
    return result


@compiled
def reference_features(
    similarity: Floats, texts: Ints, columns: Ints, first: Ints, good: Flags
) -> Floats:
    """Return [len(texts), d · FEATURES] similarities of texts to their good and bad references.

    ``similarity`` is [d, all texts, all references]; the references of ``texts[i]`` are
    ``columns[first[i]:first[i + 1]]``. Features are NaN for a text without references of a kind.
    """
    metrics = similarity.shape[0]
    result = np.full((len(texts), metrics * FEATURES), np.nan)
    for place in range(len(texts)):
        for metric in range(metrics):
            row = similarity[metric, texts[place]]
            for kind in range(2):
                at = metric * FEATURES + kind * (FEATURES // 2)
                one, two, three = -np.inf, -np.inf, -np.inf
                total, count = 0.0, 0
                for k in range(first[place], first[place + 1]):
                    if good[k] != (kind == 0):
                        continue
                    value = row[columns[k]]
                    total += value
                    count += 1
                    if value > one:
                        one, two, three = value, one, two
                    elif value > two:
                        two, three = value, two
                    elif value > three:
                        three = value
                if count > 0:
                    result[place, at] = one
                    best = one
                    if count > 1:
                        best += two
                    if count > 2:
                        best += three
                    result[place, at + 1] = best / min(count, 3)
                    result[place, at + 2] = total / count
    return result
