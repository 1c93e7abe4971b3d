"""Scores that mean something: the probability of being a true reply rather than a wrong one.

Cross entropy among replies of one context leaves open where zero is: add anything to all scores,
and the loss stays the same. Platt (1999) puts a line through them, on pairs held out:
sigmoid(a · score + b), with targets a little inside of 0 and 1, so that few pairs don't make a
wall of it. The order of scores stays as it is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STEPS = 100


def calibrate(good: Floats, bad: Floats) -> tuple[float, float]:
    """The line's slope and height, as if there were as many good as bad scores.

    >>> slope, height = calibrate(np.array([3.0, 5.0, 4.0]), np.array([1.0, 2.0, 1.0, 0.0]))
    >>> bool(slope > 0), bool(abs(slope * 2.5 + height) < 0.5)
    (True, True)
    """
    middle = float((good.mean() + bad.mean()) / 2)
    spread = float(np.concatenate([good, bad]).std()) or 1.0
    scores = (np.concatenate([good, bad]) - middle) / spread
    targets = np.concatenate(
        [
            np.full(len(good), (len(good) + 1) / (len(good) + 2)),
            np.full(len(bad), 1 / (len(bad) + 2)),
        ]
    )
    weights = np.concatenate(
        [np.full(len(good), 0.5 / len(good)), np.full(len(bad), 0.5 / len(bad))]
    )
    inputs = np.stack([scores, np.ones_like(scores)])
    line = np.array([1.0, 0.0])
    for _ in range(STEPS):  # Newton's, of a convex loss
        found = 1 / (1 + np.exp(-np.clip(line @ inputs, -30, 30)))
        slope = inputs @ (weights * (found - targets))
        curve = (inputs * (weights * np.maximum(found * (1 - found), 1e-9))) @ inputs.T
        change = np.linalg.solve(curve + 1e-9 * np.eye(2), slope)
        line = line - np.clip(change, -1, 1)
        if np.abs(change).max() < 1e-10:
            break
    if line[0] <= 0:  # it is no better than chance: keep the order all the same
        line = np.array([1.0, 0.0])
    return float(line[0] / spread), float(line[1] - line[0] * middle / spread)
