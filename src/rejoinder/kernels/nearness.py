"""How near a text is to references of which people said how good they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels.compiled import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

FEATURES = 6
"""Of each metric: highest, mean of the three highest and mean; of good ones, then of bad ones."""


@compiled
def nearest_mean(values: Floats, score: Floats, first: Ints, m: int) -> Floats:
    """[n] the mean of value · score over the m highest values of each segment, or over all where
    there are fewer. Where equal values compete for the last places, each gets its share of them:
    the order in which they stand decides nothing."""
    found = np.empty(len(first) - 1)
    for segment in range(len(found)):
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
        found[segment] = total / places
    return found


@compiled
def nearness(similarity: Floats, asked: Ints, columns: Ints, first: Ints, good: Flags) -> Floats:
    """[asked, d · FEATURES] for each text that is asked for: how near it is to its references
    (``columns[first[i]:first[i + 1]]`` of ``similarity`` [d, texts, references]), to the good and
    to the bad ones. NaN where it has none of a kind."""
    metrics = similarity.shape[0]
    found = np.full((len(asked), metrics * FEATURES), np.nan)
    for place in range(len(asked)):
        for metric in range(metrics):
            row = similarity[metric, asked[place]]
            for kind in range(2):
                at = metric * FEATURES + kind * (FEATURES // 2)
                one, two, three = -np.inf, -np.inf, -np.inf
                total, many = 0.0, 0
                for k in range(first[place], first[place + 1]):
                    if good[k] != (kind == 0):
                        continue
                    value = row[columns[k]]
                    total += value
                    many += 1
                    if value > one:
                        one, two, three = value, one, two
                    elif value > two:
                        two, three = value, two
                    elif value > three:
                        three = value
                if many > 0:
                    found[place, at] = one
                    best = one
                    if many > 1:
                        best += two
                    if many > 2:
                        best += three
                    found[place, at + 1] = best / min(many, 3)
                    found[place, at + 2] = total / many
    return found
