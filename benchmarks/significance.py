"""False positives and power of the test that ``compare`` applies to many pairs of systems.

    python benchmarks/significance.py          a minute

False positives: simulations of twelve equal systems (66 pairs) in 40 contexts; the share in which
some pair is significant after Holm's adjustment must not exceed 5 %. Power: simulations of two
systems that differ by .4 standard deviations in 100 contexts; the share in which p is at most
.05 / 66, as the first of 66 adjusted tests requires.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import ttest_rel

from rejoinder.meta_evaluation.significance import (
    approximate_randomisation,
    holm,
    randomisation_table,
)
from rejoinder.metrics.pooling import averaged

SYSTEMS, CONTEXTS, SIMULATIONS = 12, 40, 200
PAIRS = np.triu_indices(SYSTEMS, 1)


def equal_systems(kind: str, rng: np.random.Generator) -> np.ndarray:
    """Return additive statistics [systems, contexts, 2] of systems that do not differ."""
    table = np.ones((SYSTEMS, CONTEXTS, 2))
    shape = SYSTEMS, CONTEXTS
    if kind == "very skewed scores":
        table[:, :, 0] = rng.exponential(size=shape) ** 2
    elif kind == "ratings from 1 to 5":
        table[:, :, 0] = rng.integers(1, 6, shape)
    else:
        table[:, :, 0] = rng.exponential(size=shape)
        table[:, :, 1] = table[:, :, 0] + rng.exponential(size=shape)
    return table


def false_positives(kind: str, swaps: int) -> float:
    """Return the share of simulations in which some pair of equal systems is significant."""
    rng = np.random.default_rng(7)
    found = 0
    for seed in range(SIMULATIONS):
        table = equal_systems(kind, rng)
        p_values = randomisation_table(table, averaged, resamples=swaps, seed=seed)
        found += bool((holm(p_values[PAIRS]) <= 0.05).any())
    return found / SIMULATIONS


def power(swaps: int) -> tuple[float, float]:
    """Return the share of true differences that are found, and that of Student's t-test."""
    rng = np.random.default_rng(0)
    found, peer = 0, 0
    level = 0.05 / len(PAIRS[0])
    for seed in range(SIMULATIONS):
        gaps = rng.exponential(size=100) - 1 + rng.normal(size=100) / 2
        first = gaps / np.sqrt(1.25) + 0.4
        rows = [np.stack([values, np.ones(100)], axis=1) for values in (first, np.zeros(100))]
        p = approximate_randomisation(*rows, averaged, resamples=swaps, seed=seed)
        found += p is not None and p <= level
        peer += ttest_rel(first, np.zeros(100)).pvalue <= level
    return found / SIMULATIONS, peer / SIMULATIONS


def main() -> None:
    kinds = "very skewed scores", "ratings from 1 to 5", "ratios of sums"
    print(f"{'swaps':>8}" + "".join(f"{kind:>22}" for kind in kinds) + f"{'power':>8}{'t-test':>8}")
    for swaps in (1000, 5000, 10_000, 30_000):
        rates = [false_positives(kind, swaps) if swaps <= 10_000 else np.nan for kind in kinds]
        found, peer = power(swaps)
        cells = "".join(f"{rate:22.3f}" for rate in rates)
        print(f"{swaps:8,}{cells}{found:8.2f}{peer:8.2f}", flush=True)


if __name__ == "__main__":
    main()
