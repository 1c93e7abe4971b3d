"""``ribes``: rank correlation of the order of shared words (Isozaki et al. 2010).

    RIBES = NKT · P^α · BP^β
    NKT = share of the pairs of aligned words that keep the reference's order: (τ + 1) / 2
    P   = aligned words / |h|          BP = min(1, exp(1 - |r| / |h|))

A word of the reply is aligned with the same word of the reference if it occurs once in both;
otherwise by the smallest context, to its right or to its left, that occurs once in both texts.
α = 0.25 and β = 0.10 are the values of the authors' program, RIBES.py.

Choices, which NLTK and RIBES.py 1.03.1 make differently in places:

- A context to the right comes before one of the same length to the left (NLTK; RIBES.py the
  other way round).
- The context to the left may reach back to the first word (RIBES.py; NLTK stops one short of
  it in the second half of a reply).
- Fewer than two aligned words have no order: 0. But if the reference is a single word that the
  reply contains, NKT is 1 (RIBES.py; NLTK 0).
- ``perfect``: a reply that equals its reference scores 1, though the words inside a repetition
  ("no no no") cannot be aligned; without this rule both programs give it less than 1.

The corpus value is the mean over items, as in RIBES.py.

>>> import rejoinder
>>> spec = "ribes(tok=whitespace)"
>>> rejoinder.score_one(spec, "bob hit john yesterday", ["john hit bob yesterday"])
0.5
"""

# the example: ranks 2 1 0 3, so 3 of 6 pairs ascend; every word aligned, equal length

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.metric import OverlapMetric, check_range


@dataclass(frozen=True, kw_only=True)
class Ribes(OverlapMetric):
    name: ClassVar[str] = "ribes"
    summary: ClassVar[str] = "rank correlation of the order of shared words"

    alpha: float = 0.25
    beta: float = 0.10
    perfect: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("alpha", self.alpha, 0)
        check_range("beta", self.beta, 0)

    def stats(self, batch: Batch) -> Floats:
        """The value, its three factors, and 1: RIBES is averaged over items."""
        from rejoinder.kernels.ribes import ranks

        tokens = self.tokens(batch)
        aligned, ascending = ranks(
            tokens.ids, tokens.starts, batch.reply, batch.reference, self.perfect
        )
        length, expected = tokens.lengths[batch.reply], tokens.lengths[batch.reference]
        pairs = aligned * (aligned - 1) / 2
        order = np.divide(ascending, pairs, out=np.zeros(len(batch)), where=pairs > 0)
        order[(aligned == 1) & (expected == 1)] = 1.0
        precision = aligned / np.maximum(length, 1)
        brevity = np.minimum(1.0, np.exp(1 - expected / np.maximum(length, 1)))
        value = np.where(length > 0, order * precision**self.alpha * brevity**self.beta, 0.0)
        return np.column_stack([value, order, precision, brevity, np.ones(len(batch))])

    def parts(self, rows: Floats) -> dict[str, Floats]:
        with np.errstate(invalid="ignore"):
            means = rows[..., 1:4] / rows[..., 4:]
        return {"nkt": means[..., 0], "p1": means[..., 1], "bp": means[..., 2]}
