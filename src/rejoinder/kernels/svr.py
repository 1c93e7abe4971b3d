"""Support vector regression for one context: small, dense, and solved very often.

    minimise  ½ β'Kβ - y'β + ε Σ|β_i|    subject to  Σ β_i = 0  and  |β_i| ≤ C

for a kernel K and targets y; the prediction for a new text is Σ β_i k(x_i, x) + b. Sequential
minimal optimisation changes two coordinates at a time, one up and one down, so that their sum is
constant (Platt 1998); the pair is selected by second-order information (Fan et al. 2005). The
residual is ``E_i = y_i - (Kβ)_i``. Increasing β_i improves the objective until E_i falls below
b + ε, or below b - ε while β_i is negative: so each coordinate has a gradient for going up and
one for going down, and the solution is reached when no gradient up exceeds one down by more than
``tolerance``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels.compiled import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MIN_CURVATURE = 1e-12
"""Two equal texts have distance 0, by which a step must not be divided."""
MAX_STEPS = 10_000_000
"""With a huge C and a tiny γ, the optimum may not be reached: the prediction is then NaN."""


@compiled
def _solve(kernel, target, c, epsilon, tolerance):
    """Return β and b, for a kernel whose diagonal is 1."""
    n = len(target)
    beta, residual = np.zeros(n), target.copy()
    done = False
    for _ in range(MAX_STEPS):
        up, first = -np.inf, -1
        for i in range(n):
            if beta[i] < c:
                gradient = residual[i] + epsilon if beta[i] < 0 else residual[i] - epsilon
                if gradient > up:
                    up, first = gradient, i
        down, second, best_gain = np.inf, -1, 0.0
        for j in range(n):
            if beta[j] > -c:
                gradient = residual[j] - epsilon if beta[j] > 0 else residual[j] + epsilon
                down = min(down, gradient)
                gain = up - gradient
                if gain > 0:
                    curvature = max(2 - 2 * kernel[first, j], MIN_CURVATURE)
                    if gain * gain / curvature > best_gain:
                        best_gain, second = gain * gain / curvature, j
        if second < 0 or up - down <= tolerance:
            done = True
            break
        gradient = residual[second] - epsilon if beta[second] > 0 else residual[second] + epsilon
        step = (up - gradient) / max(2 - 2 * kernel[first, second], MIN_CURVATURE)
        # not beyond the bound, nor beyond 0, where the gradient changes
        room = -beta[first] if beta[first] < 0 else c - beta[first]
        other = beta[second] if beta[second] > 0 else c + beta[second]
        if step >= room or step >= other:
            step = min(room, other)
        ends = beta[first] + step, beta[second] - step
        beta[first] = _snapped(ends[0], c, step == room)
        beta[second] = _snapped(ends[1], c, step == other)
        for i in range(n):
            residual[i] -= step * (kernel[first, i] - kernel[second, i])
    return beta, _offset(beta, residual, c, epsilon) if done else np.nan


@compiled
def _snapped(value, c, at_bound):
    """Return exactly 0, C or -C after a step to that bound, without a rounding error."""
    if not at_bound:
        return value
    if value > c / 2:
        return c
    return -c if value < -c / 2 else 0.0


@compiled
def _offset(beta, residual, c, epsilon):
    """Return b: the mean gradient of the free coordinates, strictly between their bounds; if there
    are none, the middle of the interval that the others allow."""
    total, free = 0.0, 0
    up, down = -np.inf, np.inf
    for i in range(len(beta)):
        if beta[i] != 0 and abs(beta[i]) < c:
            total += residual[i] - epsilon if beta[i] > 0 else residual[i] + epsilon
            free += 1
        if beta[i] < c:
            up = max(up, residual[i] + epsilon if beta[i] < 0 else residual[i] - epsilon)
        if beta[i] > -c:
            down = min(down, residual[i] - epsilon if beta[i] > 0 else residual[i] + epsilon)
    return total / free if free else (up + down) / 2


@compiled
def _default_gamma(similarity, rows, columns):
    """Return 1 / (number of features · their variance), or 1 if all features are equal."""
    total, squares = 0.0, 0.0
    for metric in range(similarity.shape[0]):
        for i in rows:
            for j in columns:
                total += similarity[metric, i, j]
                squares += similarity[metric, i, j] ** 2
    features = similarity.shape[0] * len(columns)
    mean = total / (features * len(rows))
    variance = squares / (features * len(rows)) - mean * mean
    # the rounding error of a difference of equal sums
    return 1.0 if variance <= 1e-14 * max(mean * mean, 1.0) else 1.0 / (features * variance)


@compiled
def svr_predict(
    similarity: Floats,
    distance: Floats,
    rows: Ints,
    columns: Ints,
    changed: Ints,
    change: Floats,
    target: Floats,
    texts: Ints,
    c: float,
    epsilon: float,
    gamma: float,
    tolerance: float,
) -> Floats:
    """Return predictions for ``texts``, by a regression that is trained on the texts ``rows``.

    Features of a text are its similarities to references, ``similarity`` [d, texts, references];
    ``distance`` [texts, references] are squared distances between the features of texts. For a
    regression over ``columns``, nearly all of the references, the contributions of the ``changed``
    references, ``change`` times each, are subtracted from the distances; so leaving a reference
    out costs a subtraction. ``gamma`` of 0 stands for the default of scikit-learn (``scale``).
    """
    if gamma <= 0:
        gamma = _default_gamma(similarity, rows, columns)
    n = len(rows)
    kernel = np.empty((n, n))
    for i in range(n):
        kernel[i, i] = 1.0
        for j in range(i):
            kernel[i, j] = _rbf(similarity, distance, rows[i], rows[j], changed, change, gamma)
            kernel[j, i] = kernel[i, j]
    beta, offset = _solve(kernel, target, c, epsilon, tolerance)
    values = np.full(len(texts), offset)
    for place in range(len(texts)):
        for i in range(n):
            if beta[i] != 0:
                values[place] += beta[i] * _rbf(
                    similarity, distance, texts[place], rows[i], changed, change, gamma
                )
    return values


@compiled
def _rbf(similarity, distance, a, b, changed, change, gamma):
    """Return exp(-γ · squared distance) of two texts, the RBF kernel."""
    squared = distance[a, b]
    for k in range(len(changed)):
        for metric in range(similarity.shape[0]):
            gap = similarity[metric, a, changed[k]] - similarity[metric, b, changed[k]]
            squared -= change[k] * gap * gap
    return np.exp(-gamma * max(squared, 0.0))
