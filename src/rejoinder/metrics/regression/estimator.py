"""What the estimators share: similarities by one metric or by several, leaving the reply itself
out, and scores of people in the references' weights.

A weight w in [-1, 1] is the score e = (w + 1) / 2 in [0, 1]: a winning rate of the paper.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rejoinder.metrics.base import (
    NO_REFERENCES,
    ONLY_BAD_REFERENCES,
    ItemMetric,
    Reasons,
    WholeItemMetric,
)
from rejoinder.metrics.batch import Batch, Floats, Ints
from rejoinder.metrics.inner import inner_metric, signed_inner
from rejoinder.metrics.regression.contexts import Context, contexts, given_weights
from rejoinder.metrics.regression.similarity import unset
from rejoinder.progress import Progress
from rejoinder.spec import Spec

if TYPE_CHECKING:
    from rejoinder.metrics.sitting import Scored, Sitting

NO_OTHER = "no reference but the reply itself"
NO_SCORE = "a reference has no weight, which says how good it is"
METRICS = ("d", "d2", "d3", "d4")


@dataclass(frozen=True, kw_only=True)
class Estimator(WholeItemMetric):
    """A metric over the similarities of a reply to references with scores."""

    needs: ClassVar[frozenset[str]] = frozenset({"references", "weights"})

    d: Spec = Spec("wer", (("signed", True),))
    d2: Spec | None = None
    d3: Spec | None = None
    d4: Spec | None = None
    loo: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for key, metric in self._named.items():
            if "references" not in metric.needs or metric.whole_set:
                raise ValueError(f"{key}={metric} does not compare a reply with one reference")
            if metric.lacking() or getattr(metric, "evaluator", None) is not None:
                raise ValueError(f"{key}={metric} can't have an evaluator inside {self.name}")
            if not metric.higher_is_better:
                raise ValueError(f"{key}={metric} is no similarity: less of it is better")
        if len(set(self.metrics)) < len(self.metrics):
            raise ValueError("the same metric is given twice")
        far = max(metric.tolerance for metric in self.metrics)
        object.__setattr__(self, "tolerance", max(self.tolerance, far))

    @cached_property
    def _named(self) -> dict[str, ItemMetric]:
        given = {key: getattr(self, key) for key in METRICS}
        return {key: inner_metric(key, spec) for key, spec in given.items() if spec is not None}

    @property
    def metrics(self) -> list[ItemMetric]:
        """The metrics whose values are the similarities."""
        return list(self._named.values())

    def notes(self) -> list[str]:
        return [note for metric in self.metrics for note in metric.notes()]

    def _signed(self, key: str) -> str:
        if key in METRICS:
            return signed_inner(self._named[key]) if key in self._named else "none"
        return super()._signed(key)

    def judge(self, sitting: Sitting) -> Scored:
        from rejoinder.metrics.sitting import laid_out

        batch = sitting.batch.present()
        values, reasons = np.full(len(batch), np.nan), np.full(len(batch), None, object)
        reasons[batch.counts == 0] = NO_REFERENCES
        if "weights" in self.needs:
            weight = given_weights(batch)
        else:
            batch = batch.positive()
            weight = batch.weight
            reasons[unset(reasons) & (batch.counts == 0)] = ONLY_BAD_REFERENCES
        every = contexts(batch, weight, self.metrics)
        if sitting.on_progress is not None:
            every = _told(every, len(batch), sitting.on_progress)
        self.estimate(batch, every, values, reasons)
        keep = np.flatnonzero(unset(reasons))
        rows = np.column_stack([values[keep], np.ones(len(keep))])
        return laid_out(self, batch, rows, keep, reasons)

    @abstractmethod
    def estimate(
        self, batch: Batch, every: Iterable[Context], values: Floats, reasons: Reasons
    ) -> None:
        """Set the value of each item of the contexts, or the reason why it has none."""

    def seen(self, context: Context, place: int, reasons: Reasons) -> Ints | None:
        """The references that an item is judged by; or None, and the reason is set."""
        found = context.seen(place, self.loo)
        number = context.items[place]
        if not len(found):
            reasons[number] = NO_OTHER
            return None
        known = context.comparable(place, found)
        if not len(known):
            reasons[number] = context.reason(place, found)
            return None
        return known

    def reasons(self, batch: Batch) -> Reasons:
        from rejoinder.metrics.sitting import Sitting

        return self.judge(Sitting(batch)).reasons

    def stats(self, batch: Batch) -> Floats:
        """The estimate, and 1."""
        from rejoinder.metrics.sitting import Sitting

        return self.judge(Sitting(batch)).rows


def _told(every: Iterable[Context], total: int, on_progress: Progress) -> Iterator[Context]:
    """The contexts; when the next is asked for, one more is done."""
    done = 0
    for context in every:
        yield context
        done += len(context.items)
        on_progress(done, total)
