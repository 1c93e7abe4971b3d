"""From a stream of scored batches to a table: corpus value, mean, intervals, what is missing.

Intervals come from a Poisson bootstrap over contexts (Chamandy et al. 2012, "Estimating
uncertainty for massive data streams"): memory grows with the number of resamples, not with
the number of items, and replies to one context are drawn together.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from rejoinder.items import Item
from rejoinder.metrics.base import ItemMetric
from rejoinder.metrics.batch import Floats, Ints
from rejoinder.metrics.evaluate import Scored

SEED = 12345
RESAMPLES = 1000
CONFIDENCE = 0.95
BLOCK = 2048
"""How many resamples are drawn at a time."""


@dataclass(frozen=True)
class Estimate:
    """A value with its confidence interval; without one where there is too little to resample."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Summary:
    """One metric over one system's replies."""

    metric: ItemMetric
    system: str
    scored: int
    unscored: dict[str, int]
    """Reasons and how often each stood in the way."""
    corpus: Estimate | None
    """The value of all statistics together; None where nothing could be scored."""
    mean: Estimate | None
    """The average of the item scores."""


@dataclass
class _Tally:
    scored: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    total: Floats | None = None
    resampled: Floats | None = None
    contexts: set[int] = field(default_factory=set)


@dataclass
class Summarizer:
    """Watches batches pass and can say at any time how they sum up."""

    metrics: Sequence[ItemMetric]
    resamples: int = RESAMPLES
    seed: int = SEED
    confidence: float = CONFIDENCE
    _tallies: dict[tuple[int, str], _Tally] = field(default_factory=dict)

    def watch(
        self, batches: Iterable[tuple[list[Item], list[Scored]]]
    ) -> Iterator[tuple[list[Item], list[Scored]]]:
        """Pass batches through, counting them."""
        for items, results in batches:
            self.add(items, results)
            yield items, results

    def add(self, items: Sequence[Item], results: Sequence[Scored]) -> None:
        from rejoinder.kernels.poisson import poisson_counts

        keys = np.fromiter((_key(item.group) for item in items), np.uint64, len(items))
        waiting: list[tuple[Floats, Ints, Floats]] = []
        by_system: dict[str, list[int]] = {}
        for number, item in enumerate(items):
            by_system.setdefault(item.system, []).append(number)
        for which, result in enumerate(results):
            scored = result.scored
            for system, numbers in by_system.items():
                tally = self._tallies.setdefault((which, system), _Tally())
                chosen = np.array(numbers)
                tally.reasons.update(r for r in result.reasons[chosen] if r is not None)
                chosen = chosen[scored[chosen]]
                if not len(chosen):
                    continue
                tally.scored += len(chosen)
                if len(tally.contexts) < 2:
                    tally.contexts.update(np.unique(keys[chosen])[:2].tolist())
                rows = np.column_stack([result.rows, result.values, scored])[chosen]
                total = rows.sum(axis=0)
                tally.total = total if tally.total is None else tally.total + total
                if tally.resampled is None:
                    tally.resampled = np.zeros((self.resamples, len(total)))
                waiting.append((tally.resampled, chosen, rows))
        for first in range(0, self.resamples, BLOCK):
            counts = poisson_counts(keys, min(BLOCK, self.resamples - first), self.seed, first)
            for resampled, chosen, rows in waiting:
                resampled[first : first + BLOCK] += counts[chosen].T.astype(np.float64) @ rows

    def summaries(self) -> list[Summary]:
        """A row for every metric and system, metrics in the order in which they were asked."""
        ordered = sorted(self._tallies.items(), key=lambda pair: pair[0][0])
        return [self._summary(self.metrics[which], system, t) for (which, system), t in ordered]

    def _summary(self, metric: ItemMetric, system: str, tally: _Tally) -> Summary:
        if tally.total is None or tally.resampled is None:
            return Summary(metric, system, 0, dict(tally.reasons), None, None)
        several = len(tally.contexts) > 1
        drawn = tally.resampled[tally.resampled[:, -1] > 0]
        corpus = metric.values(tally.total[:-2])
        mean = tally.total[-2] / tally.total[-1]
        return Summary(
            metric,
            system,
            tally.scored,
            dict(tally.reasons),
            self._estimate(float(corpus), metric.values(drawn[:, :-2]), several),
            self._estimate(float(mean), drawn[:, -2] / drawn[:, -1], several),
        )

    def _estimate(self, value: float, resampled: Floats, several: bool) -> Estimate:
        """One context alone has no spread to speak of, so it gets no interval."""
        if not several or not len(resampled):
            return Estimate(value)
        tail = (1 - self.confidence) / 2
        low, high = np.quantile(resampled, [tail, 1 - tail])
        return Estimate(value, float(low), float(high))


def _key(group: str) -> int:
    """A number for a context that is the same in every process, unlike ``hash``."""
    return int.from_bytes(
        hashlib.blake2b(group.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    )
