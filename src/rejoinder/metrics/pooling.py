"""Pooling over references: from many references to one value, for all item metrics.

- ``all``: the metric is defined for several references (BLEU's clipped counts).
- ``max``: the best reference counts (Gupta et al. 2019, eq. 1). Its statistics are kept, so
  the corpus value is that of all best references together.
- ``mean``, ``top(k)``: the mean over all, or over the k best. A row becomes (value, 1), and the
  corpus value is the mean over items.
- ``soft(b)``: a smooth maximum, log Σ exp(b · value) / b. Being similar to n references is worth
  more than being similar to one, by log(n) / b at most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rejoinder.metrics.batch import Batch, Floats, Ints
from rejoinder.spec import Spec

LIMIT = 10**6
"""The largest k of ``top(k)``, and b of ``soft(b)``."""

Stats = Callable[[Batch], Floats]
Finish = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Pooling:
    """How the values of an item's references become one; see the module for the kinds."""

    kind: str
    k: int | None = None
    b: float = 1.0

    @classmethod
    def of(cls, refs: Spec, own_form: bool) -> Pooling:
        match refs:
            case Spec("all", ()) if own_form:
                return cls("all")
            case Spec("max" | "mean" as kind, ()):
                return cls(kind)
            case Spec("top", (("k", int(k)),)) if 1 <= k <= LIMIT and not isinstance(k, bool):
                return cls("top", k)
            case Spec("soft", (("b", int(b) | float(b)),)) if 0 < b <= LIMIT and b is not True:
                return cls("soft", b=b)
        choices = "all, max, mean, top(k)" if own_form else "max, mean, top(k)"
        raise ValueError(f"refs={refs} is not {choices} or soft(b)")

    @property
    def keeps_rows(self) -> bool:
        """Whether pooled rows are statistics of the metric, not averages of values."""
        return self.kind in ("all", "max")

    def rows(self, batch: Batch, stats: Stats, finish: Finish) -> Floats:
        if self.kind == "all":
            return stats(batch)
        rows = stats(batch.pairs())
        values = finish(rows)
        if self.kind == "max":
            return rows[_best(values, batch.first)]
        if self.kind == "mean":
            pooled = np.add.reduceat(values, batch.first[:-1]) / batch.counts
        elif self.kind == "top":
            pooled = _mean_of_best(values, batch.first, self.k or 1)
        else:
            pooled = _smooth_maximum(values, batch.first, self.b)
        return np.column_stack([pooled, np.ones(len(batch))])

    def finish(self, rows: Floats, finish: Finish) -> Floats:
        if self.keeps_rows:
            return finish(rows)
        return averaged(rows)


def averaged(rows: Floats) -> Floats:
    """Return the sum in the first column over the count in the last, [..., d] → [...]; NaN if the
    count is 0."""
    with np.errstate(invalid="ignore"):
        return np.asarray(rows[..., 0] / rows[..., -1])


def _best(values: Floats, first: Ints) -> Ints:
    """Return the position of the highest value of each segment, the first one on a tie."""
    owner = np.repeat(np.arange(len(first) - 1), np.diff(first))
    order = np.lexsort((np.arange(len(values)), -values, owner))
    return order[first[:-1]]


def _mean_of_best(values: Floats, first: Ints, k: int) -> Floats:
    owner = np.repeat(np.arange(len(first) - 1), np.diff(first))
    ranked = values[np.lexsort((-values, owner))]
    rank = np.arange(len(values)) - first[:-1][owner]
    kept = np.where(rank < k, ranked, 0.0)
    return np.asarray(np.add.reduceat(kept, first[:-1]) / np.minimum(np.diff(first), k))


def _smooth_maximum(values: Floats, first: Ints, b: float) -> Floats:
    best = np.maximum.reduceat(values, first[:-1])
    below = np.exp(b * (values - np.repeat(best, np.diff(first))))
    return np.asarray(best + np.log(np.add.reduceat(below, first[:-1])) / b)
