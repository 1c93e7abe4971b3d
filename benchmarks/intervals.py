"""How often the intervals of ``score`` contain the true value, in 2,000 simulated sets.

A set has contexts drawn from a large population, each with 1 to 10 replies whose statistics are
those of real replies (HRED and the human replies to DailyDialog, ``bleu(n=2)``): each context has
its own share of good ones, so that replies to a context are alike. The values of the population
are the true ones. A row is the coverage in percent over 95; the limit is 94 to 96 %.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from rejoinder.items import Item
from rejoinder.metrics.bootstrap import Resampling, interval
from rejoinder.metrics.context_sums import ContextSums
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.metric import ItemMetric, make_metric
from rejoinder.testsets import load
from table import show

SETS, RESAMPLES, POPULATION = 2_000, 1_000, 200_000
SIZES = {"small": 100, "middle": 500, "large": 10_000}
Rows = np.ndarray[Any, np.dtype[np.float64]]


def real_rows(metric: ItemMetric) -> Rows:
    """Statistics, score and 1 of each reply of a system, and of references as replies."""
    items = list(load("dailydialog-hred", "multi"))
    human = [
        Item(f"{item.id}:human", item.references[0].text, references=list(item.references[1:]))
        for item in items[::4]
        if len(item.references) > 1
    ]
    others = [
        Item(f"{item.id}:o", other.response, references=item.references)
        for item, other in pairwise(items)
    ]
    return np.concatenate(
        [
            np.column_stack([result.rows, result.values, np.ones(len(batch))])
            for batch, (result,) in evaluate([*human, *others], [metric])
        ]
    )


def population(rows: Rows, rng: np.random.Generator) -> Rows:
    """Sums of the replies to each context."""
    values = rows[:, -2]
    good, bad = np.flatnonzero(values > 0.25), np.flatnonzero(values <= 0.25)
    replies, share = rng.integers(1, 11, POPULATION), rng.beta(1, 2, POPULATION)
    owner = np.repeat(np.arange(POPULATION), replies)
    is_good = rng.random(len(owner)) < share[owner]
    chosen = np.where(is_good, rng.choice(good, len(owner)), rng.choice(bad, len(owner)))
    return np.asarray(np.add.reduceat(rows[chosen], np.cumsum(replies) - replies))


def coverage(metric: ItemMetric, contexts: Rows, size: int, seed: int) -> tuple[float, float]:
    """Return how often the corpus value and the mean of the population are inside."""
    rng = np.random.default_rng(seed)
    truth = both(metric, contexts.sum(axis=0))
    inside = np.zeros(2)
    for number in range(SETS):
        drawn = contexts[rng.integers(len(contexts), size=size)]
        keys = rng.integers(2**63, size=size).astype(np.uint64)
        sums = ContextSums.of(keys, drawn).sums
        sums = sums[sums[:, -1] > 0]
        (resampled,) = Resampling(RESAMPLES, number).sums([sums])
        total = sums.sum(axis=0)
        estimates = zip(
            truth, both(metric, total), both(metric, resampled), both(metric, total - sums),
            strict=True,
        )  # fmt: skip
        for which, (true, value, draws, left_out) in enumerate(estimates):
            low, high = interval(float(value), draws, left_out, 0.95)
            inside[which] += low <= true <= high
    return float(inside[0] / SETS), float(inside[1] / SETS)


def both(metric: ItemMetric, sums: Rows) -> tuple[Rows, Rows]:
    return metric.values(sums[..., :-2]), sums[..., -2] / sums[..., -1]


def run() -> Iterator[dict[str, Any]]:
    metric = make_metric("bleu(n=2)")
    assert isinstance(metric, ItemMetric)
    contexts = population(real_rows(metric), np.random.default_rng(1))
    for seed, (name, size) in enumerate(SIZES.items()):
        began = time.perf_counter()
        corpus, mean = coverage(metric, contexts, size, seed)
        yield {
            "name": f"{name}: {size:,} contexts, coverage of the corpus value"
            f" {corpus:.1%} and of the mean {mean:.1%} over 95 %",
            "ours_seconds": time.perf_counter() - began,
            "peer_seconds": 0.0,
            "ratio": min(corpus, mean) / 0.95,
            "required": 0.94 / 0.95,
            "enough": max(corpus, mean) <= 0.96,
        }


if __name__ == "__main__":
    show(run())
