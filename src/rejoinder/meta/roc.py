"""The area under the ROC curve: of yes-or-no ratings, where a correlation hides it, and of replies
that are known to be right or wrong."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from rejoinder.meta.join import Floats


def auc(right: Floats, wrong: Floats) -> float:
    """How often a right one has more than a wrong one; equal ones count half.

    >>> auc(np.array([3.0, 1.0]), np.array([1.0, 0.0]))
    0.875
    """
    ranks = rankdata(np.concatenate([right, wrong]))
    above = ranks[: len(right)].sum() - len(right) * (len(right) + 1) / 2
    return float(above / (len(right) * len(wrong)))


def area(scores: Floats, human: Floats) -> float | None:
    """How often a reply with the higher of two ratings has the higher score; a tie counts half.
    None unless there are exactly two different ratings.

    >>> area(np.array([0.9, 0.4, 0.4, 0.1]), np.array([1.0, 1.0, 0.0, 0.0]))
    0.875
    """
    values = np.unique(human)
    if len(values) != 2:
        return None
    good = human == values[1]
    return auc(scores[good], scores[~good])
