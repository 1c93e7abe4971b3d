"""Summaries of a stream of scored batches: corpus value, mean, intervals, unscored items.

Intervals come from a bootstrap over contexts (:mod:`rejoinder.metrics.bootstrap`): memory does not
grow with the number of items, and replies to one context are drawn together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rejoinder.errors import DataError
from rejoinder.item_table import ItemTable
from rejoinder.items import UNNAMED
from rejoinder.metrics.batch import Floats
from rejoinder.metrics.batch_scores import BatchScores
from rejoinder.metrics.bootstrap import Resampling, interval
from rejoinder.metrics.metric import ItemMetric
from rejoinder.metrics.tallies import Tallies
from rejoinder.text.tokens import Unsplittable

SEED = 12345
RESAMPLES = 1000
CONFIDENCE = 0.95
MAX_NAMED = 5
"""Systems that a note names."""
MAX_NUMBERS = 2**25
"""Limit of the numbers that the contexts of all systems take (256 MB); systems beyond it get no
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
class Summarizer:
    """Collects batches as they pass.

    ``resamples=0`` computes no intervals. Where systems are so many that the sums of their contexts
    would not fit into memory, those that come last get none, and :meth:`notes` says so.
    """

    metrics: Sequence[ItemMetric]
    resamples: int = RESAMPLES
    seed: int = SEED
    confidence: float = CONFIDENCE
    max_numbers: int = MAX_NUMBERS
    tallies: Tallies = field(default_factory=Tallies)

    def watch(
        self, batches: Iterable[tuple[ItemTable, list[BatchScores]]]
    ) -> Iterator[tuple[ItemTable, list[BatchScores]]]:
        """Pass batches through and collect them."""
        for items, results in batches:
            self.add(Tallies.of(items, results, with_contexts=self.resamples > 0))
            yield items, results

    def check_splittable(self) -> None:
        """Raise DataError if a tokenizer could not split the texts of a single item."""
        for which, metric in enumerate(self.metrics):
            own = [tally for (each, _), tally in self.tallies.of_systems.items() if each == which]
            reasons = (r for tally in own for r in tally.reasons if isinstance(r, Unsplittable))
            if not any(tally.scored for tally in own) and (reason := next(reasons, None)):
                raise DataError(f"{metric}: no item could be scored: {reason}")

    def add(self, tallies: Tallies) -> None:
        """Collect the tallies of one batch."""
        self.tallies.add(tallies)
        self.tallies.drop_contexts_beyond(self.max_numbers)

    @property
    def blank_replies(self) -> Counter[str]:
        """Number of blank replies by system."""
        return self.tallies.blank_replies

    def summaries(self) -> list[Summary]:
        """Return a summary for every metric and system, metrics in their order."""
        ordered = sorted(self.tallies.of_systems.items(), key=lambda pair: pair[0][0])
        contexts = {key: sums for key, tally in ordered if len(sums := tally.context_rows()) > 1}
        drawn = Resampling(self.resamples, self.seed).sums(list(contexts.values()))
        resampled = dict(zip(contexts, drawn, strict=True))
        summaries = []
        for (which, system), tally in ordered:
            metric, corpus, mean = self.metrics[which], None, None
            if tally.total is not None:
                rows = contexts.get((which, system)), resampled.get((which, system))
                corpus, mean = self._estimates(metric, tally.total, *rows)
            counts = tally.scored, dict(tally.reasons)
            blank = self.blank_replies[system]
            summaries.append(Summary(metric, system, *counts, corpus, mean, blank))
        return summaries

    def notes(self) -> list[str]:
        """Return what readers of the summaries should know."""
        notes = []
        if without := len(self.tallies.without_contexts):
            systems = len({system for _, system in self.tallies.of_systems})
            notes.append(
                f"{without:,} of {systems:,} systems have no confidence intervals: resamples of so"
                " many systems do not fit into memory"
            )
        return notes + blank_reply_notes(self.blank_replies)

    def _estimates(
        self, metric: ItemMetric, total: Floats, contexts: Floats | None, resampled: Floats | None
    ) -> tuple[Estimate, Estimate]:
        """Return the corpus value and the mean; a single context has no spread."""
        corpus, mean = (float(value) for value in _values(metric, total))
        if contexts is None or resampled is None:
            return Estimate(corpus), Estimate(mean)
        (corpora, means), (corpora_without, means_without) = (
            _values(metric, rows) for rows in (resampled, total - contexts)
        )
        return (
            Estimate(corpus, *interval(corpus, corpora, corpora_without, self.confidence)),
            Estimate(mean, *interval(mean, means, means_without, self.confidence)),
        )


def _values(metric: ItemMetric, rows: Floats) -> tuple[Floats, Floats]:
    """Return the corpus values and the means that follow from sums of items."""
    return metric.values(rows[..., :-2]), rows[..., -2] / rows[..., -1]
