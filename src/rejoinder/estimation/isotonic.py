"""Fit an isotonic curve from scores to ratings: the best one that never falls.

Least squares by the pool-adjacent-violators algorithm of scipy; replies with equal scores count as
one with their mean rating, as in scikit-learn, whose ``IsotonicRegression(out_of_bounds="clip")``
gives the same predictions (tests).
"""

from __future__ import annotations

import numpy as np

from rejoinder.estimation.rated_scores import Floats, RatedScores
from rejoinder.metrics.calibrated.models import Isotonic


def fit_isotonic(rated: RatedScores) -> Isotonic:
    """Return the curve of the only metric."""
    return isotonic_curve(rated.scores[0], rated.ratings)


def isotonic_curve(scores: Floats, ratings: Floats) -> Isotonic:
    """Return the curve through scores and ratings, with the ends of its level parts as knots."""
    from scipy.optimize import isotonic_regression

    places, number, count = np.unique(scores, return_inverse=True, return_counts=True)
    means = np.bincount(number, weights=ratings) / count
    values = isotonic_regression(means, weights=count.astype(float)).x
    # inside a level part, a knot says nothing
    same = np.isclose(np.diff(values), 0, rtol=0, atol=1e-12)
    inner = np.zeros(len(values), bool)
    inner[1:-1] = same[:-1] & same[1:]
    values = np.maximum.accumulate(values)
    return Isotonic(places[~inner].tolist(), values[~inner].tolist())
