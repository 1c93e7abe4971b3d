"""``delta-bleu``: BLEU over references with weights, good and bad ones (Galley et al. 2015).

    p_n = Σ_g max_{j: g ∈ r_j} w_j · min(#g(h), #g(r_j))  /  Σ_g max_j w_j · #g(h)

with a weight w_j in [-1, 1] for each reference; an unweighted reference counts 1, and with
unit weights the metric is BLEU. υBLEU (Tsuta et al. 2020) is this metric over references that
were retrieved and rated by an evaluator; weights are part of the references.

Choices that the papers leave open:

- An n-gram that occurs only in bad references adds a negative amount. If the sum of an order is
  not above zero, its precision is zero, and ``smooth`` applies as in BLEU.
- Smoothing is scaled by max_j w_j, so that an unmatched order costs what it costs in BLEU;
  unscaled, light weights would make it larger than 1.
- An item none of whose references has a weight above zero has no positive denominator: it is
  unscored, not zero.
- ρ of the brevity penalty is taken over all references, as in BLEU.
- With ``refs=max``, ``mean``, ``top(k)`` and ``soft(b)`` each reference is used alone, and its
  weight would cancel out; there it scales the score, w_j · BLEU(h, r_j).

>>> import rejoinder
>>> good, bad = {"text": "the cat sat", "weight": 0.8}, {"text": "a dog ran", "weight": -0.5}
>>> round(rejoinder.score_one("delta-bleu(n=1)", "the cat ran", [good, bad]), 4)
0.4583
"""

# the example: (0.8 + 0.8 - 0.5) / (0.8 · 3) = 0.4583

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.overlap.bleu import Bleu
from rejoinder.metrics.pooling import averaged
from rejoinder.metrics.reasons import ONLY_BAD_REFERENCES, Reasons


@dataclass(frozen=True, kw_only=True)
class DeltaBleu(Bleu):
    name: ClassVar[str] = "delta-bleu"
    summary: ClassVar[str] = "BLEU over references with weights from -1 to 1"
    needs: ClassVar[frozenset[str]] = frozenset({"references", "weights"})
    unweighted: ClassVar[str | None] = "bleu"

    n: int = 2

    @property
    def _together(self) -> bool:
        """Whether all references are read at once, not each alone and scaled by its weight."""
        return self.pooling.kind == "all"

    def weights(self, batch: Batch) -> Floats:
        return batch.weight if self._together else super().weights(batch)

    def max_gain(self, batch: Batch) -> Floats:
        if not self._together:
            return super().max_gain(batch)
        return np.maximum.reduceat(batch.weight, batch.first[:-1])

    def stats(self, batch: Batch) -> Floats:
        rows = super().stats(batch)
        if self._together:
            return rows
        return np.column_stack([batch.weight * super().finish(rows), np.ones(len(batch))])

    def finish(self, rows: Floats) -> Floats:
        return super().finish(rows) if self._together else averaged(rows)

    def parts(self, rows: Floats) -> dict[str, Floats]:
        return super().parts(rows) if self._together else {}

    def reasons(self, batch: Batch) -> Reasons:
        reasons = super().reasons(batch)
        reasons[(batch.counts > 0) & (batch.max_weight <= 0)] = ONLY_BAD_REFERENCES
        return reasons
