"""Yes-or-no ratings: the area under the ROC curve, which a correlation hides."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from rejoinder.meta.join import Floats


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
    count, others = int(good.sum()), int((~good).sum())
    above = rankdata(scores)[good].sum() - count * (count + 1) / 2
    return float(above / (count * others))
