"""Divide replies into folds by context: what belongs together is never learnt and tested on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.wording import option

Ints = NDArray[np.int64]


def folds_of(context: Ints, folds: int, seed: int) -> Ints:
    """Return the number of the fold of each reply; DataError if there are fewer contexts."""
    groups, number, sizes = np.unique(context, return_inverse=True, return_counts=True)
    if len(groups) < folds:
        raise DataError(
            f"the rated items have {len(groups)} contexts, fewer than {folds} folds; rate replies"
            f" to more contexts" + (f", or set {option('folds', len(groups))}" * (len(groups) > 1))
        )
    order = np.random.default_rng(seed).permutation(len(groups))
    fold = np.zeros(len(groups), np.int64)
    filled = np.zeros(folds)
    for group in order[np.argsort(-sizes[order], kind="stable")].tolist():
        smallest = int(filled.argmin())
        fold[group] = smallest
        filled[smallest] += sizes[group]
    return fold[number]
