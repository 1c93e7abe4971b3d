"""Base class of ``am``, ``ws`` and ``svr``: similarities by one or several metrics, leaving out the
reply itself, and human scores as the weights of references.

A weight w in [-1, 1] is the score e = (w + 1) / 2 in [0, 1]: a winning rate of the paper.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.metrics.batch import Batch, Floats, Ints
from rejoinder.metrics.batch_scores import BatchScores, batch_scores
from rejoinder.metrics.metric import ItemMetric, WholeItemMetric, nested_default
from rejoinder.metrics.reasons import NO_REFERENCES, ONLY_BAD_REFERENCES, Reasons
from rejoinder.metrics.regression.contexts import Context, Layout, contexts, item_weights
from rejoinder.metrics.regression.similarity import unset
from rejoinder.metrics.scoring_context import ScoringContext
from rejoinder.progress import Progress

NO_OTHER = "no reference but the reply itself"
NO_SCORE = "a reference has no weight"

SIGNED_WER = nested_default("wer(signed=true)")


@dataclass(frozen=True, kw_only=True)
class Estimator(WholeItemMetric):
    """A metric over the similarities of a reply to references with scores."""

    needs: ClassVar[frozenset[str]] = frozenset({"references", "weights"})
    replies_only: ClassVar[bool] = False
    """Only replies are compared with references, not references with one another."""
    max_references: ClassVar[int | None] = None
    """Limit of distinct references of a context; items of larger ones are unscored."""

    nested: ClassVar[tuple[str, ...]] = ("d", "d2", "d3", "d4")

    d: ItemMetric = SIGNED_WER
    d2: ItemMetric | None = None
    d3: ItemMetric | None = None
    d4: ItemMetric | None = None
    loo: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in self.nested:
            if (metric := getattr(self, key)) is None:
                continue
            if "references" not in metric.needs or metric.needs_whole_set:
                raise ValueError(f"{key}={metric} does not compare a reply with one reference")
            if metric.missing_requirement() or getattr(metric, "evaluator", None) is not None:
                raise ValueError(f"{key}={metric} cannot have an evaluator inside {self.name}")
            if not metric.higher_is_better:
                raise ValueError(f"{key}={metric} is not a similarity: lower values are better")
        if len(set(self.metrics)) < len(self.metrics):
            raise ValueError("the same metric is given twice")
        largest = max(metric.tolerance for metric in self.metrics)
        object.__setattr__(self, "tolerance", max(self.tolerance, largest))

    @property
    def metrics(self) -> list[ItemMetric]:
        """The metrics whose values are the similarities."""
        return [m for m in (self.d, self.d2, self.d3, self.d4) if m is not None]

    def notes(self) -> list[str]:
        return [note for metric in self.metrics for note in metric.notes()]

    def languages(self) -> dict[str, frozenset[str]]:
        return {who: codes for m in self.metrics for who, codes in m.languages().items()}

    def score(self, scoring: ScoringContext) -> BatchScores:
        batch = scoring.batch.without_blank_references()
        values, reasons = np.full(len(batch), np.nan), np.full(len(batch), None, object)
        reasons[batch.counts == 0] = NO_REFERENCES
        if "weights" in self.needs:
            weight = item_weights(batch)
        else:
            batch = batch.with_positive_references()
            weight = batch.weight
            reasons[unset(reasons) & (batch.counts == 0)] = ONLY_BAD_REFERENCES

        def too_large(layout: Layout) -> None:
            reasons[layout.items] = f"more than {self.max_references:,} references in the context"

        every: Iterable[Context] = contexts(
            batch,
            weight,
            self.metrics,
            replies_only=self.replies_only,
            max_references=self.max_references,
            too_large=too_large,
        )
        if scoring.on_progress is not None:
            every = _with_progress(every, len(batch), scoring.on_progress)
        self.estimate(batch, every, values, reasons)
        keep = np.flatnonzero(unset(reasons))
        rows = np.column_stack([values[keep], np.ones(len(keep))])
        return batch_scores(self, batch, rows, keep, reasons)

    @abstractmethod
    def estimate(
        self, batch: Batch, every: Iterable[Context], values: Floats, reasons: Reasons
    ) -> None:
        """Set the value of each item of the contexts, or the reason why it has none."""

    def references_to_compare(self, context: Context, place: int, reasons: Reasons) -> Ints | None:
        """Return the references that an item is compared with; or None, and set the reason."""
        references = context.allowed_references(place, self.loo)
        number = context.items[place]
        if not len(references):
            reasons[number] = NO_OTHER
            return None
        comparable = context.comparable(place, references)
        if not len(comparable):
            reasons[number] = context.reason(place, references)
            return None
        return comparable

    def reasons(self, batch: Batch) -> Reasons:
        return self.score(ScoringContext(batch)).reasons

    def stats(self, batch: Batch) -> Floats:
        """The estimate, and 1."""
        return self.score(ScoringContext(batch)).rows


def _with_progress(
    every: Iterable[Context], total: int, on_progress: Progress
) -> Iterator[Context]:
    """Yield the contexts; when the next one is wanted, the last one is done."""
    done = 0
    for context in every:
        yield context
        done += len(context.items)
        on_progress(done, total)
