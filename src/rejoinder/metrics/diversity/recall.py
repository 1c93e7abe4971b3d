"""``recall``: are all the good replies among the system's outputs? (Gupta et al. 2019, eq. 2)

    recall(c) = 1 / M · Σ_j max_i d(y_i, r_j)

for the outputs y of a system to a context c, and the references r of that context: for each
reference the output that comes nearest to it. ``d`` is any metric of a reply and a reference.

Choices: the references are those of all items of the set, each distinct text once (where it
has several weights, the highest counts). A reference that ``d`` can't compare with any output is
left out; if that is so for all, the set has no value. A system's value is the mean over its
contexts.

>>> import rejoinder
>>> known = ["i see a dog", "no"]
>>> shared = {"context": ["hm?"], "references": known}
>>> items = [{"id": r, "response": r, **shared} for r in ("i see", "no")]
>>> [round(judged.value, 4) for judged in rejoinder.diversity(items, ["recall(d=rouge-l)"])]
[0.8333]
"""

# the example: "i see" reaches F = 2 · 1 · ½ / 1½ = 2/3 for the first reference, "no" 1 for the
# second: (2/3 + 1) / 2

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from rejoinder.metrics.base import ItemMetric, SetMetric
from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.evaluate import score_batch
from rejoinder.registry import METRICS
from rejoinder.spec import Spec

MOST = 1 << 18
"""How many pairs are laid out at a time."""


@dataclass(frozen=True, kw_only=True)
class Recall(SetMetric):
    name: ClassVar[str] = "recall"
    summary: ClassVar[str] = "how well the outputs cover the references, by metric d"

    d: Spec = Spec("bleu", (("n", 2),))

    def __post_init__(self) -> None:
        if not isinstance(self.metric, ItemMetric) or "references" not in self.metric.needs:
            raise ValueError(f"d={self.d} does not compare a reply with a reference")
        if self.metric.lacking() or getattr(self.metric, "evaluator", None) is not None:
            raise ValueError(f"d={self.d} compares with one reference: it can't have an evaluator")

    @cached_property
    def metric(self) -> ItemMetric:
        return METRICS.make(self.d)  # type: ignore[no-any-return]

    def _signed(self, key: str) -> str:
        if key == "d":
            return "(" + self.metric.signature().rpartition("|version:")[0] + ")"
        return super()._signed(key)

    def reason(self, batch: Batch) -> str | None:
        if (found := super().reason(batch)) is not None:
            return found
        for pairs in _pairs(batch):
            reasons = self.metric.reasons(pairs)
            if any(reason is None for reason in reasons):
                return None
        return str(reasons[0])

    def measure(self, batch: Batch) -> float:
        nearest = np.concatenate([self._nearest(pairs, len(batch)) for pairs in _pairs(batch)])
        return float(np.nanmean(nearest))

    def _nearest(self, pairs: Batch, outputs: int) -> Floats:
        """For each reference its best value; NaN where no output can be compared with it."""
        values = score_batch(self.metric, pairs).values.reshape(-1, outputs)
        return np.asarray(np.fmax.reduce(values, axis=1))


def _pairs(batch: Batch) -> Iterator[Batch]:
    """Every distinct reference with every output, a block of references at a time."""
    references, which = np.unique(batch.reference, return_inverse=True)
    weight = np.full(len(references), -np.inf)
    np.maximum.at(weight, which, batch.weight)
    step = max(MOST // len(batch), 1)
    for begin in range(0, len(references), step):
        block = references[begin : begin + step]
        many = len(block) * len(batch)
        yield Batch.laid_out(
            list(batch.items) * len(block),
            batch.table,
            np.tile(batch.reply, len(block)),
            np.repeat(block, len(batch)),
            np.arange(many + 1, dtype=np.int64),
            np.repeat(weight[begin : begin + step], len(batch)),
        )
