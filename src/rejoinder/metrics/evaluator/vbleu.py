"""``vbleu``: υBLEU, ∆BLEU over references that an evaluator retrieves (Tsuta et al. 2020).

    p_n = Σ_g max_{j: g ∈ r_j} w_j · min(#g(h), #g(r_j))  /  Σ_g max_j w_j · #g(h)

as in ``delta-bleu``, where r_j are the item's own references, the responses of the k pairs of the
evaluator's pool that are nearest to the item, and the last turn of the context (the reply of a
parrot); w_j are the weights of the item's references and the evaluator's ratings of the others.

Without an evaluator, the metric reads the weights of the file, as ``delta-bleu`` does: 'rejoinder
expand' with the same evaluator writes them, so both ways give the same scores. Parameters and
choices are those of ``delta-bleu``, and

``evaluator``: a folder made by 'rejoinder fit'.  ``k``: number of responses that are retrieved; by
default as many as the evaluator was made for.

>>> import rejoinder
>>> good, bad = {"text": "the cat sat", "weight": 0.8}, {"text": "a dog ran", "weight": -0.5}
>>> round(rejoinder.score_one("vbleu(n=1)", "the cat ran", [good, bad]), 4)
0.4583
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rejoinder.metrics.evaluator.evaluator_metric import ExpandingMetric
from rejoinder.metrics.overlap.delta_bleu import DeltaBleu


@dataclass(frozen=True, kw_only=True)
class VBleu(DeltaBleu, ExpandingMetric):
    name: ClassVar[str] = "vbleu"
    summary: ClassVar[str] = "delta-bleu over references that an evaluator retrieved and rated"
