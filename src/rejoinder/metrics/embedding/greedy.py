"""``greedy-matching``: each word with the most similar word of the other text (Rus, Lintean 2012).

    G(a, b) = 1 / |a| · Σ_{v ∈ a} max_{w ∈ b} cos(e(v), e(w))
    score   = (G(h, r) + G(r, h)) / 2

Choices: every occurrence of a word counts. Words are looked up as for ``embedding-average``: those
without a vector are left out of both texts, and a reply without others is unscored. ``--parts``
shows both directions. (The program of Liu et al. 2016 takes
dot products of vectors as they are, and 0 where every cosine is negative.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.metrics.batch import Floats, Ints
from rejoinder.metrics.embedding.static import KnownWords, StaticMetric


@dataclass(frozen=True, kw_only=True)
class GreedyMatching(StaticMetric):
    name: ClassVar[str] = "greedy-matching"
    summary: ClassVar[str] = "cosine of each word with the nearest of the other text"

    def compare(self, words: KnownWords, reply: Ints, reference: Ints) -> Floats:
        from rejoinder.kernels.matching import match

        both = match(
            words.directions,
            words.ids,
            words.starts,
            np.ones(len(words.ids)),
            reply,
            reference,
            np.ones(len(reply)),
            -1.0,
        )
        return np.column_stack([(both[0] + both[1]) / 2, *both])

    def parts(self, rows: Floats) -> dict[str, Floats]:
        with np.errstate(invalid="ignore"):
            means = rows / rows[..., 3:4]
        return {"precision": means[..., 4], "recall": means[..., 5], **super().parts(rows)}
