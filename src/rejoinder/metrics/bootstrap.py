"""Confidence intervals by a bootstrap over contexts.

Contexts are drawn with replacement, which is a product of a matrix of counts with the sums of the
contexts. The interval is the bias-corrected and accelerated one (BCa; Efron 1987) at expanded
levels (Hesterberg 2015, § 5.3.1). Plain percentiles are too narrow for few contexts: the bootstrap
divides by n where the variance has n - 1, its tails are those of the normal distribution instead
of Student's t, and scores are skewed.

    z₀ = Φ⁻¹(share of resamples below the value)      the bias
    a  = Σ dᵢ³ / (6 · (Σ dᵢ²)^1.5)                    the acceleration
    level = Φ(z₀ + (z₀ + z) / (1 - a · (z₀ + z)))     with z = ± √(n / (n - 1)) · t

dᵢ is the mean of the values that leave out one context minus the value without context i.
benchmarks/intervals.py measures how often the true value is inside.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rejoinder.metrics.batch import Floats

NUMBERS_AT_ONCE = 2**20
"""Counts that are in memory at a time."""


@dataclass(frozen=True)
class Resampling:
    """How many resamples are drawn, and with which random seed."""

    resamples: int
    seed: int

    def sums(self, contexts: Sequence[Floats]) -> list[Floats]:
        """Return, for each array [n, d] of contexts, [resamples, d] sums over contexts that were
        drawn with replacement; arrays with the same n share the draws."""
        by_size: dict[int, list[int]] = {}
        for number, each in enumerate(contexts):
            by_size.setdefault(len(each), []).append(number)
        sums: dict[int, Floats] = {}
        for n, numbers in by_size.items():
            beside = np.concatenate([contexts[number] for number in numbers], axis=1)
            drawn = np.concatenate([counts @ beside for counts in self._draws(n)])
            ends = np.cumsum([contexts[number].shape[1] for number in numbers])
            sums |= zip(numbers, np.split(drawn, ends[:-1], axis=1), strict=True)
        return [sums[number] for number in range(len(contexts))]

    def _draws(self, n: int) -> Iterator[Floats]:
        """Yield [some, n] how often each of n contexts is drawn in each resample."""
        rng = np.random.default_rng(self.seed)
        at_once = max(NUMBERS_AT_ONCE // n, 1)
        for first in range(0, self.resamples, at_once):
            some = min(at_once, self.resamples - first)
            drawn = rng.integers(n, size=(some, n)) + n * np.arange(some)[:, None]
            counts = np.bincount(drawn.ravel(), minlength=some * n)
            yield counts.reshape(some, n).astype(np.float64)


def interval(
    value: float, resampled: Floats, left_out: Floats, confidence: float
) -> tuple[float, float]:
    """Return the interval of a value, from [resamples] its values of resamples and [n] those that
    leave out one context each."""
    from scipy import special

    n, count = len(left_out), len(resampled)
    below = np.sum(resampled < value) + np.sum(resampled == value) / 2
    bias = special.ndtri((below + 0.5) / (count + 1))
    distance = left_out.mean() - left_out
    spread = np.sum(distance**2) ** 1.5
    acceleration = np.sum(distance**3) / (6 * spread) if spread > 0 else 0.0
    tail = math.sqrt(n / (n - 1)) * special.stdtrit(n - 1, (1 - confidence) / 2)
    levels = []
    for z in (bias + tail, bias - tail):
        shrink = 1 - acceleration * z
        moved = bias + z / shrink if shrink > 0 else math.copysign(math.inf, z)
        levels.append(special.ndtr(moved))
    low, high = np.quantile(resampled, levels)
    return float(low), float(high)
