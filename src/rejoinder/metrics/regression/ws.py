"""``ws``: human scores of the nearest references, good or bad (Sugiyama et al. 2019, eq. 2).

    WS(h) = 1 / M · Σ_{m = 1 … M} e_m · s(h, r_m)

over the ``m`` references (3) that are most similar to the reply h, where e = (w + 1) / 2 is the
score of a reference with the weight w: 0 for the worst, 1 for the best. ``d`` is the metric that
gives s: any that compares a reply with a reference; with ``d2``, ``d3`` and ``d4``, s is the mean
of several. It should be above 0: if it is negative, as mostly with ``wer(signed=true)``, good
references lower the score of a reply, and bad ones do not.

Choices: an item is unscored if one of its references has no weight. With fewer than m references,
the average is over those. Equally similar references share the last of the m places. A reply that
is itself among the references is scored by the others (``loo=true``: leave one out). The corpus
value is the mean over items.

>>> import rejoinder
>>> good, bad = {"text": "a b x y", "weight": 0.6}, {"text": "a b c z", "weight": -0.2}
>>> round(rejoinder.score_one("ws(d=wer(tok=whitespace))", "a b c d", [good, bad]), 4)
0.35
"""

# the example: (.8 · ½ + .4 · ¾) / 2

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.metrics.batch import Floats
from rejoinder.metrics.metric import ItemMetric, nested_default
from rejoinder.metrics.regression.estimator import NO_SCORE
from rejoinder.metrics.regression.nearest import NearestEstimator

WER = nested_default("wer")


@dataclass(frozen=True, kw_only=True)
class Ws(NearestEstimator):
    name: ClassVar[str] = "ws"
    summary: ClassVar[str] = "scores of the m nearest references, weighted by similarity d"

    d: ItemMetric = WER

    def refused(self, weight: Floats) -> str | None:
        return NO_SCORE if np.isnan(weight).any() else None

    def factor(self, weight: Floats) -> Floats:
        return (weight + 1) / 2
