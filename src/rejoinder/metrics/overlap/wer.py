"""``wer``: word error rate, as a similarity.

    NL = D(h, r) / max(|h|, |r|)       1 - NL in [0, 1], or 1 - 2 · NL in [-1, 1]

D is the Levenshtein distance over tokens: the fewest insertions, deletions and substitutions.
Sugiyama et al. 2019 (§ 3.1) use both ranges: ``signed=true`` gives the second one, in which a
reply that shares nothing with a good reference counts against it.

Choices: ``norm=longer`` divides by the longer of the two texts, which keeps NL within [0, 1].
``norm=reference`` is the classical word error rate, edits per word of the reference; that can
exceed 1, where it is cut, so that the similarity keeps its range. Over several items, edits and
lengths are added up before they are divided (and only then cut), as word error rates are
reported. An empty reply has an error rate of 1.

>>> import rejoinder
>>> rejoinder.score_one("wer(tok=whitespace)", "i see a dog", ["i saw a big dog"])
0.6
"""

# the example: see → saw and one insertion, 2 edits over 5 words

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.metric import OverlapMetric, check_choice

NORMS = ("longer", "reference")


@dataclass(frozen=True, kw_only=True)
class Wer(OverlapMetric):
    name: ClassVar[str] = "wer"
    summary: ClassVar[str] = "1 - word error rate: normalised edit distance over tokens"

    norm: str = "longer"
    signed: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("norm", self.norm, NORMS)

    def stats(self, batch: Batch) -> Floats:
        """Edits, and the length that they are divided by."""
        from rejoinder.kernels.alignment import levenshtein

        tokens = self.tokens(batch)
        edits = levenshtein(tokens.ids, tokens.starts, batch.reply, batch.reference)
        length = tokens.lengths[batch.reference]
        if self.norm == "longer":
            length = np.maximum(length, tokens.lengths[batch.reply])
        return np.column_stack([edits, length]).astype(np.float64)

    def finish(self, rows: Floats) -> Floats:
        rate = self._rate(rows)
        return np.asarray(1 - 2 * rate if self.signed else 1 - rate)

    def parts(self, rows: Floats) -> dict[str, Floats]:
        return {"error_rate": self._rate(rows)}

    def _rate(self, rows: Floats) -> Floats:
        edits, length = rows[..., 0], rows[..., 1]
        rate = np.where(length > 0, edits / np.where(length > 0, length, 1.0), edits > 0)
        return np.asarray(np.minimum(rate, 1.0))
