"""Platt scaling: turn raw scores into the probability that a reply is a true one.

Cross entropy among the replies to one context does not fix where zero is: adding a constant to
all scores leaves the loss unchanged. Platt (1999) fits sigmoid(a · score + b) on held-out pairs,
with targets slightly inside (0, 1), so that few pairs do not give an infinite slope. The order of
scores is kept.

scikit-learn fits this curve too, but only around classifiers (``CalibratedClassifierCV``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAX_ITERATIONS = 100


def calibrate(good: Floats, bad: Floats) -> tuple[float, float]:
    """Return slope and intercept, with good and bad scores weighted equally as classes.

    >>> slope, intercept = calibrate(np.array([3.0, 5.0, 4.0]), np.array([1.0, 2.0, 1.0, 0.0]))
    >>> bool(slope > 0), bool(abs(slope * 2.5 + intercept) < 0.5)
    (True, True)
    """
    center = float((good.mean() + bad.mean()) / 2)
    scale = float(np.concatenate([good, bad]).std()) or 1.0
    scores = (np.concatenate([good, bad]) - center) / scale
    targets = np.concatenate(
        [
            np.full(len(good), (len(good) + 1) / (len(good) + 2)),
            np.full(len(bad), 1 / (len(bad) + 2)),
        ]
    )
    weights = np.concatenate(
        [np.full(len(good), 0.5 / len(good)), np.full(len(bad), 0.5 / len(bad))]
    )
    design = np.stack([scores, np.ones_like(scores)])
    parameters = np.array([1.0, 0.0])
    for _ in range(MAX_ITERATIONS):  # Newton's method on a convex loss
        predicted = 1 / (1 + np.exp(-np.clip(parameters @ design, -30, 30)))
        gradient = design @ (weights * (predicted - targets))
        curvature = weights * np.maximum(predicted * (1 - predicted), 1e-9)
        hessian = (design * curvature) @ design.T
        change = np.linalg.solve(hessian + 1e-9 * np.eye(2), gradient)
        parameters = parameters - np.clip(change, -1, 1)
        if np.abs(change).max() < 1e-10:
            break
    if parameters[0] <= 0:  # no better than random: keep the order of scores all the same
        parameters = np.array([1.0, 0.0])
    slope, intercept = parameters
    return float(slope / scale), float(intercept - slope * center / scale)
