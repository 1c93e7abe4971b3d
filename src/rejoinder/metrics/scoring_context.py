"""The scoring of one batch by several metrics, which share what they computed.

Metrics with the same evaluator share its expansion of the batch, and a metric that is also nested
in another one is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

from rejoinder.metrics.batch import Batch
from rejoinder.metrics.batch_scores import BatchScores
from rejoinder.metrics.third_party import third_party_errors
from rejoinder.progress import Progress

if TYPE_CHECKING:
    from rejoinder.evaluator.contamination import TestSet
    from rejoinder.evaluator.evaluator import Evaluator
    from rejoinder.evaluator.expansion import Expansion
    from rejoinder.metrics.metric import ItemMetric

T = TypeVar("T")


def ignore(text: str) -> None:
    """Say nothing."""


@dataclass
class ScoringContext:
    """One batch, and what was computed for it so far."""

    batch: Batch
    test_set: TestSet | None = None
    """All contexts of the test set, if the batch is only a part of it."""
    on_progress: Progress | None = None
    """Called with the number of items done and their total, by metrics that score the whole set
    at once."""
    on_message: Callable[[str], None] = ignore
    """Called with facts that need no attention, such as how many requests will be sent."""
    on_note: Callable[[str], None] = ignore
    on_part: Progress | None = None
    """Called with the number of items of the batch that are done and their total, by metrics that
    take long for each."""
    _computed: dict[Hashable, Any] = field(default_factory=dict)

    def score(self, metric: ItemMetric) -> BatchScores:
        """Return the scores of the batch by a metric."""
        with third_party_errors(type(metric)):
            return self._once(metric, lambda: metric.score(self))

    def expansion(self, evaluator: Evaluator, k: int | None = None) -> Expansion:
        """Return what an evaluator retrieves for the items of the batch."""
        from rejoinder.evaluator.contamination import TestSet

        if self.test_set is None:
            self.test_set = TestSet.of(self.batch.items)
        leaks = self.test_set.leaks(evaluator)
        k = evaluator.manifest.retrieval.k if k is None else k
        return self._once(
            ("expansion", str(evaluator), k),
            lambda: evaluator.expansion(self.batch.items, k, leaks),
        )

    def expanded(self, evaluator: Evaluator, k: int | None = None) -> Batch:
        """Return the batch with rated references."""
        expansion = self.expansion(evaluator, k)
        return self._once(("expanded", id(expansion)), lambda: Batch.of(expansion.items))

    def _once(self, key: Hashable, compute: Callable[[], T]) -> T:
        if key not in self._computed:
            self._computed[key] = compute()
        return cast(T, self._computed[key])


def score_batch(metric: ItemMetric, batch: Batch) -> BatchScores:
    """Score a batch by one metric; items that it cannot score get a reason and no value."""
    return ScoringContext(batch).score(metric)
