"""Binary ratings: area under the ROC curve, and recall@1 of right replies.

Where ratings have two values, these say more than a correlation.
"""

from __future__ import annotations

import numpy as np

from rejoinder.meta_evaluation.join import Floats, Ints


def auc(right: Floats, wrong: Floats) -> float:
    """Return how often a right reply has a higher score than a wrong one; ties count half.

    >>> auc(np.array([3.0, 1.0]), np.array([1.0, 0.0]))
    0.875
    """
    from scipy.stats import rankdata  # slow to import, and a server of a study rarely needs it

    ranks = rankdata(np.concatenate([right, wrong]))
    above = ranks[: len(right)].sum() - len(right) * (len(right) + 1) / 2
    return float(above / (len(right) * len(wrong)))


def roc_auc(scores: Floats, human: Floats) -> float | None:
    """Return the area under the ROC curve; None unless there are exactly two different ratings.

    >>> roc_auc(np.array([0.9, 0.4, 0.4, 0.1]), np.array([1.0, 1.0, 0.0, 0.0]))
    0.875
    """
    values = np.unique(human)
    if len(values) != 2:
        return None
    good = human == values[1]
    return auc(scores[good], scores[~good])


def recall_at_1(scores: Floats, human: Floats, contexts: Ints) -> float | None:
    """Return the share of contexts in which a right reply has the highest score.

    Equal scores share the first place. Contexts without a right or without a wrong reply are left
    out. None unless there are exactly two different ratings and a context that counts.

    >>> scores, contexts = np.array([0.9, 0.1, 0.2, 0.5, 0.5, 0.4]), np.array([1, 1, 1, 2, 2, 2])
    >>> recall_at_1(scores, np.array([1.0, 0, 0, 1, 0, 0]), contexts)
    0.75
    """
    values = np.unique(human)
    if len(values) != 2:
        return None
    right = human == values[1]
    _, number = np.unique(contexts, return_inverse=True)
    highest = np.full(number.max() + 1, -np.inf)
    np.maximum.at(highest, number, scores)
    first = scores == highest[number]
    shared = np.bincount(number, first & right) / np.bincount(number, first)
    of_right, of_all = np.bincount(number, right), np.bincount(number)
    counted = (of_right > 0) & (of_right < of_all)
    return float(shared[counted].mean()) if counted.any() else None
