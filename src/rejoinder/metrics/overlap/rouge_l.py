"""``rouge-l``: F score of the longest common subsequence with a reference (Lin 2004).

    P = LCS(h, r) / |h|      R = LCS(h, r) / |r|
    F = (1 + β²) · P · R / (R + β² · P)

The words of a common subsequence have the same order in both texts, with or without others between.

Choices: β = 1, as in the rouge-score package (a larger β favours recall). A reply without
tokens, or nothing in common, is 0. Over several items ROUGE is reported as the mean of their
scores, so that is the corpus value. The rouge-score package drops everything but a-z and 0-9
before it compares, and so gives two identical Japanese texts 0; here ``tok`` and ``lower``
decide what a token is.

>>> import rejoinder
>>> spec = "rouge-l(tok=whitespace)"
>>> round(rejoinder.score_one(spec, "police killed the gunman", ["police kill the gunman"]), 4)
0.75
"""

# the example: police … the gunman are 3 of 4 words on either side, P = R = 3/4

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.metric import OverlapMetric, check_range


@dataclass(frozen=True, kw_only=True)
class RougeL(OverlapMetric):
    name: ClassVar[str] = "rouge-l"
    summary: ClassVar[str] = "longest common subsequence, as an F score"

    beta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("beta", self.beta, 0, above=True)

    def stats(self, batch: Batch) -> Floats:
        """F, precision, recall, and 1: ROUGE is averaged over items."""
        from rejoinder.kernels.alignment import lcs

        tokens = self.tokens(batch)
        common = lcs(tokens.ids, tokens.starts, batch.reply, batch.reference)
        # an empty text has nothing in common, so the divisor does not matter
        precision = common / np.maximum(tokens.lengths[batch.reply], 1)
        recall = common / np.maximum(tokens.lengths[batch.reference], 1)
        square = self.beta**2
        weighted = recall + square * precision
        score = np.zeros(len(batch))
        np.divide((1 + square) * precision * recall, weighted, out=score, where=weighted > 0)
        return np.column_stack([score, precision, recall, np.ones(len(batch))])

    def parts(self, rows: Floats) -> dict[str, Floats]:
        with np.errstate(invalid="ignore"):
            means = rows[..., 1:3] / rows[..., 3:]
        return {"precision": means[..., 0], "recall": means[..., 1]}
