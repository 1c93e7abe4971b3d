"""Support vector regression of one context: small, dense, and solved very often.

    minimise  ½ β'Kβ - y'β + ε Σ|β_i|    with  Σ β_i = 0  and  |β_i| ≤ C

for a kernel K and targets y; the value of a new text is Σ β_i k(x_i, x) + b. Two coordinates are
moved at a time, one up and one down, so that their sum stays (Platt 1998); the pair is the one
that promises most by second order (Fan et al. 2005). ``E_i = y_i - (Kβ)_i`` is what is left to
explain. Moving β_i up pays until E_i falls below b + ε, or below b - ε while β_i is negative: so
each coordinate has one price for up and one for down, and all is done when no price for up exceeds
one for down by more than ``tolerance``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels.compiled import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAST = 1e-12
"""Two equal texts have no distance; a step along it must not be divided by 0."""
MOST_STEPS = 10_000_000
"""With a huge C and hardly any γ, the optimum may be out of reach: then there is no value."""


@compiled
def _solve(kernel, target, c, epsilon, tolerance):
    """β and b, for a kernel whose diagonal is 1."""
    n = len(target)
    beta, left = np.zeros(n), target.copy()
    done = False
    for _ in range(MOST_STEPS):
        up, first = -np.inf, -1
        for i in range(n):
            if beta[i] < c:
                price = left[i] + epsilon if beta[i] < 0 else left[i] - epsilon
                if price > up:
                    up, first = price, i
        down, second, promise = np.inf, -1, 0.0
        for j in range(n):
            if beta[j] > -c:
                price = left[j] - epsilon if beta[j] > 0 else left[j] + epsilon
                down = min(down, price)
                gain = up - price
                if gain > 0:
                    bend = max(2 - 2 * kernel[first, j], LEAST)
                    if gain * gain / bend > promise:
                        promise, second = gain * gain / bend, j
        if second < 0 or up - down <= tolerance:
            done = True
            break
        price = left[second] - epsilon if beta[second] > 0 else left[second] + epsilon
        step = (up - price) / max(2 - 2 * kernel[first, second], LEAST)
        # no further than to the bound, or to 0, where the price changes
        room = -beta[first] if beta[first] < 0 else c - beta[first]
        other = beta[second] if beta[second] > 0 else c + beta[second]
        if step >= room or step >= other:
            step = min(room, other)
        ends = beta[first] + step, beta[second] - step
        beta[first] = _landed(ends[0], c, step == room)
        beta[second] = _landed(ends[1], c, step == other)
        for i in range(n):
            left[i] -= step * (kernel[first, i] - kernel[second, i])
    return beta, _offset(beta, left, c, epsilon) if done else np.nan


@compiled
def _landed(value, c, at_an_end):
    """Exactly 0, C or -C where a step went to its end: rounding must not leave a crumb."""
    if not at_an_end:
        return value
    if value > c / 2:
        return c
    return -c if value < -c / 2 else 0.0


@compiled
def _offset(beta, left, c, epsilon):
    """b: the mean price of those strictly between their bounds; without any, the middle of what
    the others allow."""
    total, free = 0.0, 0
    up, down = -np.inf, np.inf
    for i in range(len(beta)):
        if beta[i] != 0 and abs(beta[i]) < c:
            total += left[i] - epsilon if beta[i] > 0 else left[i] + epsilon
            free += 1
        if beta[i] < c:
            up = max(up, left[i] + epsilon if beta[i] < 0 else left[i] - epsilon)
        if beta[i] > -c:
            down = min(down, left[i] - epsilon if beta[i] > 0 else left[i] + epsilon)
    return total / free if free else (up + down) / 2


@compiled
def _width(similarity, rows, columns):
    """1 / (features · their variance), the usual γ; 1 where all features are equal."""
    total, squares = 0.0, 0.0
    for metric in range(similarity.shape[0]):
        for i in rows:
            for j in columns:
                total += similarity[metric, i, j]
                squares += similarity[metric, i, j] ** 2
    features = similarity.shape[0] * len(columns)
    mean = total / (features * len(rows))
    variance = squares / (features * len(rows)) - mean * mean
    # what is left of a difference of equal sums
    return 1.0 if variance <= 1e-14 * max(mean * mean, 1.0) else 1.0 / (features * variance)


@compiled
def estimate(
    similarity: Floats,
    apart: Floats,
    rows: Ints,
    columns: Ints,
    changed: Ints,
    change: Floats,
    target: Floats,
    asked: Ints,
    c: float,
    epsilon: float,
    gamma: float,
    tolerance: float,
) -> Floats:
    """The values of the texts ``asked``, by a regression over the texts ``rows``.

    ``similarity`` [d, texts, references] says how similar texts are, and ``apart`` [texts,
    references] how far apart their similarities to all references are, squared. A regression over
    ``columns``, nearly all of the references, has that less what the ``changed`` ones add to it,
    ``change`` times each; so leaving one reference out costs a subtraction. ``gamma`` of 0 is the
    usual one.
    """
    if gamma <= 0:
        gamma = _width(similarity, rows, columns)
    n = len(rows)
    kernel = np.empty((n, n))
    for i in range(n):
        kernel[i, i] = 1.0
        for j in range(i):
            kernel[i, j] = _near(similarity, apart, rows[i], rows[j], changed, change, gamma)
            kernel[j, i] = kernel[i, j]
    beta, offset = _solve(kernel, target, c, epsilon, tolerance)
    values = np.full(len(asked), offset)
    for place in range(len(asked)):
        for i in range(n):
            if beta[i] != 0:
                values[place] += beta[i] * _near(
                    similarity, apart, asked[place], rows[i], changed, change, gamma
                )
    return values


@compiled
def _near(similarity, apart, a, b, changed, change, gamma):
    """exp(-γ · squared distance) of a text and a reference, which is a text, too."""
    distance = apart[a, b]
    for k in range(len(changed)):
        for metric in range(similarity.shape[0]):
            gap = similarity[metric, a, changed[k]] - similarity[metric, b, changed[k]]
            distance -= change[k] * gap * gap
    return np.exp(-gamma * max(distance, 0.0))
