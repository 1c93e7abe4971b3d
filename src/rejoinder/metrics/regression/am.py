"""``am``: the average similarity to the nearest good references (Sugiyama et al. 2019, eq. 1).

    AM(h) = 1 / M · Σ_{m = 1 … M} s(h, r_m)

over the ``m`` references (3) that are most similar to the reply h. ``d`` is the metric that gives
s: any that compares a reply with a reference, such as ``bleu``, ``ribes``, ``sentence-cosine``,
``bertscore``, or ``wer``, in the range from 0 to 1 or, with ``signed=true``, from -1 to 1. With
``d2``, ``d3`` and ``d4``, s is the mean of several metrics.

Choices: references without a weight are good ones, those with a weight of 0 or less are left out.
With fewer than m references, the average is over those. A reply that is itself among the references
is scored by the others (``loo=true``: leave one out): all references that differ from it in white
space only are left out. The corpus value is the mean over items.

>>> import rejoinder
>>> references = ["a b c d", "a b x y", "a x y z", "p q r s"]
>>> rejoinder.score_one("am(d=wer(tok=whitespace))", "a b c d", references)
0.25
"""

# the example: the first is the reply itself; the others have 2, 3 and 4 edits of 4 words:
# (½ + ¼ + 0) / 3

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rejoinder.metrics.regression.nearest import NearestEstimator


@dataclass(frozen=True, kw_only=True)
class Am(NearestEstimator):
    name: ClassVar[str] = "am"
    summary: ClassVar[str] = "mean similarity, by metric d, to the m nearest good references"
    needs: ClassVar[frozenset[str]] = frozenset({"references"})
