"""``recall``: how well a system's outputs cover the good replies (Gupta et al. 2019, eq. 2).

    recall(c) = 1 / M · Σ_j max_i d(y_i, r_j)

for the outputs y of a system to a context c, and the references r of that context: for each
reference its most similar output. ``d`` is any metric of a reply and a reference.

Choices: the references are those of all items of the set, each distinct text once (with its highest
weight). A reference that ``d`` cannot compare with any output is left out; if all are, the set has
no value. A system's value is the mean over its contexts.

>>> import rejoinder
>>> references = ["i see a dog", "no"]
>>> shared = {"context": ["hm?"], "references": references}
>>> items = [{"id": r, "response": r, **shared} for r in ("i see", "no")]
>>> [round(score.value, 4) for score in rejoinder.diversity(items, ["recall(d=rouge-l)"])]
[0.8333]
"""

# the example: "i see" reaches F = 2 · 1 · ½ / 1½ = 2/3 for the first reference, "no" 1 for the
# second: (2/3 + 1) / 2

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.metric import ItemMetric, SetMetric, nested_default
from rejoinder.metrics.scoring_context import score_batch

BLEU = nested_default("bleu(n=2)")
MAX_PAIRS = 1 << 18
"""Number of pairs that are scored at a time."""


@dataclass(frozen=True, kw_only=True)
class Recall(SetMetric):
    name: ClassVar[str] = "recall"
    summary: ClassVar[str] = "how well the outputs cover the references, by metric d"

    nested: ClassVar[tuple[str, ...]] = ("d",)

    d: ItemMetric = BLEU

    def __post_init__(self) -> None:
        super().__post_init__()
        if "references" not in self.d.needs:
            raise ValueError(f"d={self.d} does not compare a reply with a reference")
        if self.d.missing_requirement() or getattr(self.d, "evaluator", None) is not None:
            raise ValueError(f"d={self.d} compares with one reference: it cannot have an evaluator")

    def notes(self) -> list[str]:
        return self.d.notes()

    def languages(self) -> dict[str, frozenset[str]]:
        return self.d.languages()

    def reason(self, batch: Batch) -> str | None:
        if (missing := super().reason(batch)) is not None:
            return missing
        for pairs in _pairs(batch):
            reasons = self.d.reasons(pairs)
            if any(reason is None for reason in reasons):
                return None
        return str(reasons[0])

    def measure(self, batch: Batch) -> float:
        nearest = np.concatenate([self._nearest(pairs, len(batch)) for pairs in _pairs(batch)])
        return float(np.nanmean(nearest))

    def _nearest(self, pairs: Batch, outputs: int) -> Floats:
        """Return for each reference its best value; NaN if it can be compared with no output."""
        values = score_batch(self.d, pairs).values.reshape(-1, outputs)
        return np.asarray(np.fmax.reduce(values, axis=1))


def _pairs(batch: Batch) -> Iterator[Batch]:
    """Yield every distinct reference with every output, a block of references at a time."""
    references, which = np.unique(batch.reference, return_inverse=True)
    weight = np.full(len(references), -np.inf)
    np.maximum.at(weight, which, batch.weight)
    step = max(MAX_PAIRS // len(batch), 1)
    for begin in range(0, len(references), step):
        block = references[begin : begin + step]
        many = len(block) * len(batch)
        yield Batch.from_arrays(
            list(batch.items) * len(block),
            batch.table,
            np.tile(batch.reply, len(block)),
            np.repeat(block, len(batch)),
            np.arange(many + 1, dtype=np.int64),
            np.repeat(weight[begin : begin + step], len(batch)),
        )
