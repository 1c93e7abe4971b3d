"""Summaries of a stream of scored batches: corpus value, mean, intervals, unscored items.

Intervals come from a Poisson bootstrap over contexts (Chamandy et al. 2012, "Estimating
uncertainty for massive data streams"): memory grows with the number of resamples, not with the
number of items, and replies to one context are drawn together.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rejoinder.items import UNNAMED, Item
from rejoinder.metrics.batch import Floats, Ints
from rejoinder.metrics.evaluate import BatchScores
from rejoinder.metrics.metric import ItemMetric

SEED = 12345
RESAMPLES = 1000
CONFIDENCE = 0.95
MAX_NAMED = 5
"""Systems that a note names."""
BLOCK = 2048
"""Number of resamples that are drawn at a time."""
MAX_RESAMPLED = 2**25
"""Limit of the numbers that the resamples of all systems take (256 MB); systems beyond it get no
intervals."""


@dataclass(frozen=True)
class Estimate:
    """A value with its confidence interval, if one was computed and there are two contexts."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Summary:
    """One metric over the replies of one system."""

    metric: ItemMetric
    system: str
    scored: int
    unscored: dict[str, int]
    """For each reason the number of items that are unscored."""
    corpus: Estimate | None
    """The value of all statistics together; None if nothing could be scored."""
    mean: Estimate | None
    """The mean of the item scores."""
    blank: int = 0
    """Number of blank replies of the system, scored or not."""


def blank_reply_notes(blank_replies: Mapping[str, int]) -> list[str]:
    """Return how many replies of which systems have no text, if there are any."""
    if not (count := sum(blank_replies.values())):
        return []
    named = [f"{name} {n:,}" for name, n in blank_replies.items() if n and name != UNNAMED]
    of = f" ({', '.join(named[:MAX_NAMED])}{', …' if len(named) > MAX_NAMED else ''})"
    are = "reply is" if count == 1 else "replies are"
    return [
        f"{count:,} {are} blank{of if named else ''}; blank replies are not left out, but scored"
        " like others"
    ]


@dataclass
class _Tally:
    scored: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    total: Floats | None = None
    resampled: Floats | None = None
    contexts: set[int] = field(default_factory=set)
    """Up to two distinct contexts."""


@dataclass
class Summarizer:
    """Collects batches as they pass.

    ``resamples=0`` computes no intervals. Where systems are so many that their resamples would not
    fit into memory, those that come last get none, and :meth:`notes` says so.
    """

    metrics: Sequence[ItemMetric]
    resamples: int = RESAMPLES
    seed: int = SEED
    confidence: float = CONFIDENCE
    max_resampled: int = MAX_RESAMPLED
    blank_replies: Counter[str] = field(default_factory=Counter)
    """Number of blank replies by system."""
    _tallies: dict[tuple[int, str], _Tally] = field(default_factory=dict)
    _resampled: Counter[int] = field(default_factory=Counter)
    """Numbers that the resamples of each metric take."""
    _without_intervals: set[str] = field(default_factory=set)

    def watch(
        self, batches: Iterable[tuple[list[Item], list[BatchScores]]]
    ) -> Iterator[tuple[list[Item], list[BatchScores]]]:
        """Pass batches through and collect them."""
        for items, results in batches:
            self.add(items, results)
            yield items, results

    def add(self, items: Sequence[Item], results: Sequence[BatchScores]) -> None:
        """Collect one batch."""
        keys = np.fromiter((_key(item.group) for item in items), np.uint64, len(items))
        resampling: list[tuple[Floats, Ints, Floats]] = []
        by_system: dict[str, list[int]] = {}
        for number, item in enumerate(items):
            by_system.setdefault(item.system, []).append(number)
            if not item.response.strip():
                self.blank_replies[item.system] += 1
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
                rows = np.column_stack([result.rows[chosen], result.values[chosen], scored[chosen]])
                total = rows.sum(axis=0)
                if tally.total is None:
                    tally.total = total
                    tally.resampled = self._resamples_of(which, system, len(total))
                else:
                    tally.total = tally.total + total
                if tally.resampled is not None:
                    resampling.append((tally.resampled, chosen, rows))
        if resampling:
            self._resample(keys, resampling)

    def _resamples_of(self, which: int, system: str, size: int) -> Floats | None:
        """Return zeros for the sums of all resamples; None if there is no room for them."""
        if not self.resamples:
            return None
        size *= self.resamples
        if self._resampled[which] + size > self.max_resampled // len(self.metrics):
            self._without_intervals.add(system)
            return None
        self._resampled[which] += size
        return np.zeros((self.resamples, size // self.resamples))

    def _resample(self, keys: np.ndarray, resampling: list[tuple[Floats, Ints, Floats]]) -> None:
        from rejoinder.kernels.poisson import poisson_counts

        for first in range(0, self.resamples, BLOCK):
            counts = poisson_counts(keys, min(BLOCK, self.resamples - first), self.seed, first)
            for resampled, chosen, rows in resampling:
                resampled[first : first + BLOCK] += counts[chosen].T.astype(np.float64) @ rows

    def summaries(self) -> list[Summary]:
        """Return a summary for every metric and system, metrics in their order."""
        ordered = sorted(self._tallies.items(), key=lambda pair: pair[0][0])
        return [self._summary(self.metrics[which], system, t) for (which, system), t in ordered]

    def notes(self) -> list[str]:
        """Return what readers of the summaries should know."""
        notes = []
        if self._without_intervals:
            count = len(self._without_intervals)
            notes.append(
                f"{count:,} of {len({system for _, system in self._tallies}):,} systems have no"
                " confidence intervals: resamples of so many systems do not fit into memory"
            )
        return notes + blank_reply_notes(self.blank_replies)

    def _summary(self, metric: ItemMetric, system: str, tally: _Tally) -> Summary:
        blank = self.blank_replies[system]
        if tally.total is None:
            return Summary(metric, system, 0, dict(tally.reasons), None, None, blank)
        corpus = float(metric.values(tally.total[:-2]))
        mean = float(tally.total[-2] / tally.total[-1])
        estimates = Estimate(corpus), Estimate(mean)
        # a single context has no spread
        if tally.resampled is not None and len(tally.contexts) > 1:
            drawn = tally.resampled[tally.resampled[:, -1] > 0]
            if len(drawn):
                estimates = (
                    self._interval(corpus, metric.values(drawn[:, :-2])),
                    self._interval(mean, drawn[:, -2] / drawn[:, -1]),
                )
        return Summary(metric, system, tally.scored, dict(tally.reasons), *estimates, blank)

    def _interval(self, value: float, resampled: Floats) -> Estimate:
        tail = (1 - self.confidence) / 2
        low, high = np.quantile(resampled, [tail, 1 - tail])
        return Estimate(value, float(low), float(high))


def _key(group: str) -> int:
    """Return a number for a context that is the same in every process, unlike ``hash``."""
    return int.from_bytes(
        hashlib.blake2b(group.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    )
