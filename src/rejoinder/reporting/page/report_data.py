"""The data of a report: items, their scores, and the remarks of the scores file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from rejoinder.errors import DataError, UsageError
from rejoinder.items import Item, Score
from rejoinder.meta_evaluation.join import Joined, join
from rejoinder.meta_evaluation.ranking import find_label
from rejoinder.spec import did_you_mean
from rejoinder.wording import option

PREFERRED = ("rejoinder", "ruber")
"""Metrics that rank the systems unless another one is chosen: they need no references."""


@dataclass
class ScoreNotes:
    """The signatures and the reasons for unscored items in a scores file."""

    signatures: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, dict[str, str]] = field(default_factory=dict)
    """By metric and item id, why the item could not be scored."""
    intervals: dict[str, dict[str, tuple[float, float]]] = field(default_factory=dict)
    """By metric and item id, where people's rating is expected, of metrics that say so."""
    sets: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By metric and reason, number of contexts and systems that could not be scored."""

    def watch(self, scores: Iterable[tuple[int, Score]]) -> Iterator[tuple[int, Score]]:
        """Yield the scores and collect their signatures and reasons, which ``join`` drops."""
        for line, score in scores:
            self.signatures.setdefault(score.metric, score.signature)
            if score.interval is not None and score.level == "item":
                self.intervals.setdefault(score.metric, {})[score.id] = score.interval
            if score.value is None:
                reason = score.unscored or "no reason given"
                if score.level == "item":
                    self.reasons.setdefault(score.metric, {})[score.id] = reason
                else:
                    self.sets[score.metric, reason] += 1
            yield line, score

    def counted(self) -> list[tuple[str, str, int]]:
        """Return metric, reason and count of unscored items, then of sets."""
        rows = [
            (metric, reason, count)
            for metric, reasons in self.reasons.items()
            for reason, count in Counter(reasons.values()).most_common()
        ]
        return rows + [(metric, reason, count) for (metric, reason), count in self.sets.items()]


@dataclass(frozen=True)
class ReportData:
    """Items with scores, and the metric that ranks the systems."""

    items: Sequence[Item]
    joined: Joined
    notes: ScoreNotes
    metric: str
    """The metric that ranks the systems."""

    @property
    def metrics(self) -> list[str]:
        """Metrics of single replies, the ranking one first."""
        names = [name for name in self.joined.order if name in self.joined.item_scores]
        return [self.metric, *(name for name in names if name != self.metric)]

    @property
    def set_metrics(self) -> list[str]:
        """Metrics of sets of replies."""
        return [name for name in self.joined.order if name not in self.joined.item_scores]

    @cached_property
    def systems(self) -> list[str]:
        """Systems in the order of the items, which decides their colours."""
        return list(dict.fromkeys(item.system for item in self.items))

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Number of each system in that order."""
        return {name: number for number, name in enumerate(self.systems)}


def load_report_data(
    items: Sequence[Item],
    scores: Iterable[tuple[int, Score]],
    *,
    metric: str | None = None,
    items_name: str,
    scores_name: str,
) -> ReportData:
    """Join scores to items and choose the metric that ranks the systems."""
    notes = ScoreNotes()
    joined = join(items, notes.watch(scores), items_name=items_name, scores_name=scores_name)
    available = [name for name in joined.order if name in joined.item_scores]
    if not available:
        raise DataError(
            "no metric scores single replies, which ranking needs; add one such as 'rouge-l'",
            path=scores_name,
        )
    return ReportData(items, joined, notes, _ranking_metric(available, metric))


def _ranking_metric(available: Sequence[str], wanted: str | None) -> str:
    if wanted is None:
        for preferred in PREFERRED:
            for name in available:
                if name.partition("(")[0] == preferred:
                    return name
        return available[-1]
    label = find_label(available, wanted)
    if label is None:
        hint = did_you_mean(wanted, available)
        raise UsageError(f"{option('metric')}: the scores have no '{wanted}': {hint}")
    return label
