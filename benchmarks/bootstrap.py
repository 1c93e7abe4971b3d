"""Bootstrap intervals of correlations: our kernels against scipy.stats called in a loop.

10,000 resamples of 500 items for 10 metrics. scipy is timed on a few hundred resamples and its
time scaled linearly, because all of them would take minutes.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from rejoinder.meta_evaluation.correlate import Statistic, bootstrap
from table import show

ITEMS, METRICS, RESAMPLES, PEER_CALLS = 500, 10, 10_000, 300
PEERS: dict[Statistic, Callable[..., Any]] = {
    "pearson": stats.pearsonr,
    "spearman": stats.spearmanr,
    "kendall": stats.kendalltau,
}
CASES: list[tuple[tuple[Statistic, ...], float]] = [
    (("pearson", "spearman"), 50.0),
    (("kendall",), 10.0),
]


def data() -> tuple[np.ndarray, np.ndarray]:
    """Ratings from 1 to 5 averaged over five people, and metrics that follow them with noise."""
    rng = np.random.default_rng(20240501)
    human = rng.integers(1, 6, (ITEMS, 5)).mean(axis=1)
    return human + rng.normal(size=(METRICS, ITEMS)), human


def peer_seconds(
    columns: np.ndarray, human: np.ndarray, statistics: tuple[Statistic, ...]
) -> float:
    """Estimate scipy's time for all resamples of all metrics from PEER_CALLS of them."""
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    for call in range(PEER_CALLS):
        items = rng.integers(0, ITEMS, ITEMS)
        for statistic in statistics:
            PEERS[statistic](columns[call % METRICS, items], human[items])
    return (time.perf_counter() - start) / PEER_CALLS * RESAMPLES * METRICS


def ours_seconds(
    columns: np.ndarray, human: np.ndarray, statistics: tuple[Statistic, ...]
) -> float:
    """Time all resamples, including the draws; the median of three runs."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        bootstrap(columns, human, resamples=RESAMPLES, statistics=statistics)
        times.append(time.perf_counter() - start)
    return sorted(times)[1]


def run() -> list[dict[str, Any]]:
    columns, human = data()
    bootstrap(columns, human, resamples=2)  # compiles the kernels, or loads them
    results = []
    for statistics, required in CASES:
        ours, peer = (
            measure(columns, human, statistics) for measure in (ours_seconds, peer_seconds)
        )
        results.append(
            {
                "name": f"{RESAMPLES:,} resamples of {' and '.join(statistics)}: scipy in a loop",
                "ours_seconds": ours,
                "peer_seconds": peer,
                "ratio": peer / ours,
                "required": required,
            }
        )
    return results


if __name__ == "__main__":
    show(run())
