"""``vbertscore``: BERTScore over weighted references, good and bad ones (Tsuta et al. 2023).

    P = 1 / |h| · Σ_{i ∈ h} max_{j ∈ r} w · cos(h_i, r_j)
    R = 1 / |r| · Σ_{j ∈ r} max_{i ∈ h} w · cos(h_i, r_j)      F = 2 · P · R / (P + R)

(equations 11 and 12) for a reference r of weight w in [-1, 1]; an unweighted reference counts 1,
and with unit weights the metric is ``bertscore``. Of several references the best one counts, as
in BERTScore: ``refs=max``. The other parameters are those of ``bertscore``.

Choices that the paper leaves open:

- For w ≥ 0 the weight may as well be a factor of the sum: P, R and F are w times those of
  ``bertscore``. For w < 0 the printed maximum pairs each token with the *least* similar one: a bad
  reference would reward replies that differ from it, and a reply that repeats it would lose
  nothing. So by default the weight is outside of the maximum (``weight=outside``), and being near a
  bad reference costs; ``weight=inside`` is the equation as printed.
- Under ``refs=max`` the default never takes a bad reference, since a good one gives 0 or more;
  under ``mean``, ``top(k)`` and ``soft(b)`` bad ones count.
- An item none of whose references has a weight above zero is unscored, as for ``delta-bleu``.
- The papers' references are those that an evaluator retrieved and rated: ``evaluator`` is its
  folder, ``k`` the number that is retrieved (by default as many as it was made for). Without an
  evaluator, the metric reads the weights of the file.
- ``rescale`` is applied last, after the weights, so that it changes no ranking here either.

>>> import rejoinder
>>> good, bad = {"text": "It was great!", "weight": 0.5}, {"text": "No idea.", "weight": -1}
>>> round(rejoinder.score_one("vbertscore", "It was great!", [good, bad]), 4)
0.5
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.embedding.bertscore import BertScore, with_f
from rejoinder.metrics.evaluator.evaluator_metric import ExpandingMetric
from rejoinder.metrics.metric import check_choice
from rejoinder.metrics.reasons import ONLY_BAD_REFERENCES, Reasons

WEIGHT_PLACES = ("outside", "inside")


@dataclass(frozen=True, kw_only=True)
class VBertScore(BertScore, ExpandingMetric):
    name: ClassVar[str] = "vbertscore"
    summary: ClassVar[str] = "BERTScore over references with weights from -1 to 1"
    needs: ClassVar[frozenset[str]] = frozenset({"references", "weights"})
    unweighted: ClassVar[str | None] = "bertscore"

    weight: str = "outside"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("weight", self.weight, WEIGHT_PLACES)

    def stats(self, batch: Batch) -> Floats:
        """P, R, F, each weighted, and 1."""
        if self.weight == "inside":
            return with_f(*self.matches(batch, batch.weight))
        rows = super().stats(batch)
        rows[:, :3] *= batch.weight[:, None]
        return rows

    def reasons(self, batch: Batch) -> Reasons:
        reasons = super().reasons(batch)
        reasons[(batch.counts > 0) & (batch.max_weight <= 0)] = ONLY_BAD_REFERENCES
        return reasons
