"""``entropy``: entropy of the distribution of n-grams (Ent-n, Zhang et al. 2018).

    Ent-n = - Σ_g p(g) · ln p(g),   p(g) = #g / Σ #g   over all replies

Unlike ``distinct``, it depends not only on the number of different n-grams, but also on whether a
few of them make up most of the text. It needs no references.

Choices: the natural logarithm, as in the authors' program, so the unit is the nat (1.4427 bit);
n = 4, as they report it. Pooled over the replies of a system. A set without
n-grams has no value.

>>> from rejoinder.items import Item
>>> from rejoinder.metrics.evaluate import score_sets
>>> items = [Item(id="a", response="i see"), Item(id="b", response="i know")]
>>> [round(score.value, 4) for score in score_sets(items, [Entropy(n=1)])]
[1.0397]
"""

# the example: i 2/4, see and know 1/4 each: ½ ln 2 + 2 · ¼ ln 4 = 1.5 ln 2 = 1.0397

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.metrics.batch import Batch
from rejoinder.metrics.diversity.distinct import NgramSet


@dataclass(frozen=True, kw_only=True)
class Entropy(NgramSet):
    name: ClassVar[str] = "entropy"
    summary: ClassVar[str] = "entropy of the n-gram distribution, in nats"

    n: int = 4

    def measure(self, batch: Batch) -> float:
        counts = self.counts(batch)
        share = counts / counts.sum()
        # 0 - …: the entropy of a single n-gram is 0, not -0
        return float(0.0 - np.sum(share * np.log(share)))
