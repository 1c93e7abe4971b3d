"""``bertscore``: greedy matching of contextual token vectors (Zhang et al. 2020).

    P = Σ_{i ∈ h} u_i · max_{j ∈ r} cos(h_i, r_j) / Σ_{i ∈ h} u_i
    R = Σ_{j ∈ r} u_j · max_{i ∈ h} cos(h_i, r_j) / Σ_{j ∈ r} u_j      F = 2 · P · R / (P + R)

over the vectors of the tokens of reply and reference in ``layer`` of an encoder, which reads each
text by itself. As in the bert-score package, special tokens such as [CLS] have the importance
u = 0: they are not matched themselves, but other tokens may match them. All other tokens have
u = 1, or with ``idf=true`` log((N + 1) / (c + 1)), where c of N texts have the token.

``part``: which of ``p``, ``r`` and ``f`` is the score; ``refs=max`` takes the best reference by it,
so that P of ``part=p`` and F of ``part=f`` may belong to different references, as in the package.
``--parts`` shows all three.

``rescale=true`` gives (x - b) / (1 - b), where the baseline b is the score of random pairs. It
spreads the scores and changes no ranking. N, c and b come from ``calibration=FILE``, which
``rejoinder train calibration`` makes from your own texts; a calibration of another model or layer
is refused. (The package has baselines without idf; ours are measured with the idf that is used.)

Choices: a token with negative cosines only counts 0 (so does the package if its batch was padded,
which is nearly always). A blank reply is 0 (the package raises an error); so is a text whose tokens
all have importance 0. Texts that are longer than the model can read are truncated, and counted. The
corpus value is the mean over items.

>>> import rejoinder
>>> round(rejoinder.score_one("bertscore", "It was great!", ["It was great!"]), 4)
1.0
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rejoinder.metrics.batch import Batch, Floats, Ints
from rejoinder.metrics.embedding.calibration import (
    HOW,
    Calibration,
    calibration_digest,
    check_calibration,
    open_calibration,
)
from rejoinder.metrics.embedding.contextual import EncoderMetric, distinct_texts
from rejoinder.metrics.embedding.vectors import Codes, Vectors, unit
from rejoinder.metrics.metric import check_choice

if TYPE_CHECKING:
    from rejoinder.encode.transformer import Encoder

PARTS = {"p": 0, "r": 1, "f": 2}


@dataclass(frozen=True)
class PairTokens:
    """The tokens of some texts, and the pairs of texts that are compared."""

    ids: Codes
    starts: Ints
    vectors: Vectors
    """[tokens, d] unit vectors."""
    reply: Ints
    reference: Ints

    def match(self, importance: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """Return P and R of each pair, with cosines multiplied by its weight."""
        from rejoinder.kernels.matching import match

        return match(
            self.vectors,
            np.arange(len(self.ids), dtype=np.int32),
            self.starts,
            importance[np.minimum(self.ids, len(importance) - 1)],
            self.reply,
            self.reference,
            weight,
            0.0,
        )


@dataclass(frozen=True, kw_only=True)
class BertScore(EncoderMetric):
    name: ClassVar[str] = "bertscore"
    summary: ClassVar[str] = "greedy matching of contextual token vectors"

    layer: int = 6
    part: str = "f"
    idf: bool = False
    rescale: bool = False
    calibration: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("part", self.part, PARTS)
        self.check_layer(self.layer)
        wanted = [key for key in ("idf", "rescale") if getattr(self, key)]
        if wanted and self.calibration is None:
            raise ValueError(f"{wanted[0]}=true needs calibration=FILE; {HOW}")
        if self.calibration is not None:
            if not wanted:
                raise ValueError("calibration=… is for idf=true, rescale=true or both")
            check_calibration(self.calibration, self.encoder.digest, self.layer)

    @cached_property
    def measured(self) -> Calibration | None:
        return None if self.calibration is None else open_calibration(self.calibration)

    def _signed(self, key: str) -> str:
        if key == "calibration":
            # the content of the file, not its name
            return "none" if self.calibration is None else calibration_digest(self.calibration)
        return super()._signed(key)

    def stats(self, batch: Batch) -> Floats:
        """P, R, F, and 1."""
        return with_f(*self.matches(batch, np.ones(len(batch))))

    def matches(self, batch: Batch, weight: Floats) -> tuple[Floats, Floats]:
        """Return P and R of each pair, with cosines multiplied by its weight."""
        return self.read(batch).match(self._importance, weight)

    def read(self, batch: Batch) -> PairTokens:
        """Return the vectors of all tokens of a batch of pairs."""
        texts, reply, reference = distinct_texts(batch)
        tokens = self.encoder.tokens(texts, layer=self.layer)
        return PairTokens(tokens.ids, tokens.starts, unit(tokens.vectors), reply, reference)

    @cached_property
    def _importance(self) -> Floats:
        weights = self.measured.idf() if self.idf and self.measured is not None else np.ones(1)
        return importance(self.encoder, weights)

    def finish(self, rows: Floats) -> Floats:
        return self._value(rows, self.part)

    def parts(self, rows: Floats) -> dict[str, Floats]:
        names = {"precision": "p", "recall": "r", "f": "f"}
        return {name: self._value(rows, part) for name, part in names.items()}

    def _value(self, rows: Floats, part: str) -> Floats:
        with np.errstate(invalid="ignore"):
            value = np.asarray(rows[..., PARTS[part]] / rows[..., 3])
        if not self.rescale or self.measured is None:
            return value
        baseline = self.measured.baseline(self.idf)[PARTS[part]]
        return np.asarray((value - baseline) / (1 - baseline))


def importance(encoder: Encoder, weights: Floats) -> Floats:
    """Return ``weights`` (by token number) with 0 for special tokens.

    The last entry is that of all higher numbers.
    """
    marks = sorted(encoder.special_ids)
    missing = max([mark + 2 - len(weights) for mark in marks], default=0)
    table = np.concatenate([weights, np.full(max(missing, 0), weights[-1])])
    table[marks] = 0.0
    return table


def with_f(precision: Floats, recall: Floats) -> Floats:
    """Return [n, 4] P, R, F and 1."""
    both = precision + recall
    score = np.divide(2 * precision * recall, both, out=np.zeros(len(both)), where=both > 0)
    return np.column_stack([precision, recall, score, np.ones(len(both))])
