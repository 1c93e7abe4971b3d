"""``sentence-cosine``: cosine of two sentence vectors of an encoder.

    score = cos(s(h), s(r))

where s(t) is the mean of the vectors of the tokens of t (``pool=mean``), or the vector of the
first token (``pool=cls``), in ``layer``; by default the last one. Use the pooling of the model's
training. Gupta et al. 2019 use Skip-Thought and GenSen in this way.

Choices: a blank reply is 0. Texts that are longer than the model can read are truncated, and
counted. The corpus value is the mean over items.

>>> import rejoinder
>>> both = ["What a lovely cat!"], ["The meeting is on Monday."]
>>> near, far = (rejoinder.score_one("sentence-cosine", "Your kitten is cute.", r) for r in both)
>>> near > 0.5 > far
True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.embedding.contextual import EncoderMetric, distinct_texts
from rejoinder.metrics.metric import check_choice

POOLS = ("mean", "cls")


@dataclass(frozen=True, kw_only=True)
class SentenceCosine(EncoderMetric):
    name: ClassVar[str] = "sentence-cosine"
    summary: ClassVar[str] = "cosine of sentence vectors of an encoder"

    layer: int | None = None
    pool: str = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("pool", self.pool, POOLS)
        if self.layer is not None:
            self.check_layer(self.layer)

    def _signed(self, key: str) -> str:
        if key == "layer" and self.layer is None:
            return str(self.encoder.layers)
        return super()._signed(key)

    def stats(self, batch: Batch) -> Floats:
        """The cosine, and 1."""
        texts, reply, reference = distinct_texts(batch)
        vectors = self.encoder.sentences(texts, layer=self.layer, pooling=self.pool)
        cosine = np.einsum("nd,nd->n", vectors[reply], vectors[reference], dtype=np.float64)
        cosine[batch.table.blank[batch.reply]] = 0.0
        return np.column_stack([cosine, np.ones(len(batch))])
