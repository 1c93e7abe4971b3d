"""What a report is about: items, scores, and what the scores file says besides values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from rejoinder.errors import DataError, UsageError
from rejoinder.items import Item, Score
from rejoinder.meta_evaluation.join import Joined, join
from rejoinder.registry import METRICS
from rejoinder.spec import did_you_mean, parse

RANKS = "ruber"
"""The metric that ranks systems unless another one is chosen: it needs no reference of anybody."""


@dataclass
class Notes:
    """What stands beside the values of a scores file."""

    signatures: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, dict[str, str]] = field(default_factory=dict)
    """For each metric, by item, why it could not be scored."""
    sets: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By metric and reason, contexts and systems that could not be judged."""

    def watch(self, scores: Iterable[tuple[int, Score]]) -> Iterator[tuple[int, Score]]:
        """Pass scores through, noting what ``join`` has no use for."""
        for line, score in scores:
            self.signatures.setdefault(score.metric, score.signature)
            if score.value is None:
                reason = score.unscored or "no reason given"
                if score.level == "item":
                    self.reasons.setdefault(score.metric, {})[score.id] = reason
                else:
                    self.sets[score.metric, reason] += 1
            yield line, score

    def counted(self) -> list[tuple[str, str, int]]:
        """Metric, reason, how often; items first."""
        rows = [
            (metric, reason, count)
            for metric, found in self.reasons.items()
            for reason, count in Counter(found.values()).most_common()
        ]
        return rows + [(metric, reason, count) for (metric, reason), count in self.sets.items()]


@dataclass(frozen=True)
class Material:
    items: Sequence[Item]
    joined: Joined
    notes: Notes
    metric: str
    """The one that ranks the systems."""

    @property
    def metrics(self) -> list[str]:
        """Those that judge single replies, the ranking one first."""
        others = [name for name in self.joined.order if name in self.joined.item_scores]
        return [self.metric, *(name for name in others if name != self.metric)]

    @property
    def set_metrics(self) -> list[str]:
        return [name for name in self.joined.order if name not in self.joined.item_scores]

    @cached_property
    def systems(self) -> list[str]:
        """In the order of the items, which gives each its colour everywhere in the page."""
        return list(dict.fromkeys(item.system for item in self.items))

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each system in that order."""
        return {name: number for number, name in enumerate(self.systems)}


def gather(
    items: Sequence[Item],
    scores: Iterable[tuple[int, Score]],
    *,
    metric: str | None = None,
    items_name: str,
    scores_name: str,
) -> Material:
    """Lay scores over items, and choose the metric that ranks."""
    notes = Notes()
    joined = join(items, notes.watch(scores), items_name=items_name, scores_name=scores_name)
    known = [name for name in joined.order if name in joined.item_scores]
    if not known:
        raise DataError(
            "no metric has scores of single replies, which systems are ranked by;"
            " score with one such as 'rouge-l' too",
            path=scores_name,
        )
    return Material(items, joined, notes, _chosen(known, metric))


def _chosen(known: Sequence[str], wanted: str | None) -> str:
    if wanted is None:
        return next((name for name in known if _name(name) == RANKS), known[-1])
    same = [name for name in known if name == wanted or _spec(name) == _spec(wanted)]
    if not same:
        raise UsageError(f"--metric: the scores have no '{wanted}': {did_you_mean(wanted, known)}")
    return same[0]


def _spec(label: str) -> str:
    """A spec in its one spelling; what is none stays as it is."""
    try:
        return str(parse(label))
    except UsageError:
        return label


def _name(label: str) -> str:
    return label.partition("(")[0]


def higher_is_better(label: str) -> bool:
    """What the metric says of itself; one that is not known here is taken to mean well."""
    try:
        return bool(METRICS.find(_name(label)).higher_is_better)
    except UsageError:
        return True
