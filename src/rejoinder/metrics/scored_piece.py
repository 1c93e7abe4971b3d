"""What ``score`` keeps of a batch of scored items: lines of the scores file, sums, values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rejoinder.item_table import ItemTable
from rejoinder.metrics.batch import Floats
from rejoinder.metrics.batch_scores import BatchScores
from rejoinder.metrics.costs import MetricCost, cost_of_batch
from rejoinder.metrics.metric import Metric
from rejoinder.metrics.records import coverage_records, item_score_lines
from rejoinder.metrics.tallies import Tallies


@dataclass(frozen=True)
class Wanted:
    """What is to be kept."""

    lines: bool
    """The lines of the scores file."""
    parts: bool
    """Also the parts of the scores, in these lines."""
    values: bool
    contexts: bool
    """Sums by context, for intervals."""


@dataclass(frozen=True)
class ScoredPiece:
    """The scores of some items, in their order."""

    ids: list[str]
    lines: bytes
    tallies: Tallies
    systems: Sequence[str] = ()
    values: Sequence[Floats] = ()
    """By metric; like what follows, empty unless values are wanted."""
    unscored: Sequence[dict[str, str]] = ()
    """By metric, the reason for each item without a score."""
    coverage: Sequence[list[dict[str, float] | None] | None] = ()
    """By metric, how well an evaluator covers the items, if it has one."""
    judging: Sequence[Sequence[dict[str, float] | None] | None] = ()
    """By metric, how a language model judged the items, if it asks one."""
    costs: Sequence[MetricCost] = ()
    """By metric, what the scores took; always there."""

    @classmethod
    def of(
        cls,
        labels: Mapping[Metric, str],
        items: ItemTable,
        results: Sequence[BatchScores],
        wanted: Wanted,
    ) -> ScoredPiece:
        """Keep what is wanted of a batch."""
        lines = (
            item_score_lines(labels, items, results, parts=wanted.parts) if wanted.lines else b""
        )
        tallies = Tallies.of(items, results, with_contexts=wanted.contexts)
        costs = [cost_of_batch(result) for result in results]
        if not wanted.values:
            return cls(items.ids, lines, tallies, costs=costs)
        return cls(
            items.ids,
            lines,
            tallies,
            items.systems,
            [result.values for result in results],
            [
                {
                    id: str(why)
                    for id, why in zip(items.ids, result.reasons, strict=True)
                    if why is not None
                }
                for result in results
            ],
            [None if each.coverage is None else coverage_records(each) for each in results],
            [each.judging for each in results],
            costs,
        )
