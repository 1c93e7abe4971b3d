"""Base class of metrics over an encoder: the model, its digest in the signature, truncated texts.

A score may differ in its sixth decimal with the other texts of a network's batch; with vectors from
the cache it is the same again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rejoinder.metrics.batch import Batch, Ints
from rejoinder.metrics.metric import ItemMetric

if TYPE_CHECKING:
    from rejoinder.encode.transformer import Encoder


@dataclass(frozen=True, kw_only=True)
class EncoderMetric(ItemMetric):
    """An item metric over the vectors of an encoder."""

    best: ClassVar[float | None] = 1.0
    tolerance: ClassVar[float] = 1e-5
    max_characters: ClassVar[int | None] = 2**16

    model: str = "minilm"

    @cached_property
    def encoder(self) -> Encoder:
        from rejoinder.encode.transformer import open_encoder

        return open_encoder(self.model)

    def check_layer(self, layer: int) -> None:
        """Raise ValueError unless the model has this layer; 0 are its input embeddings."""
        if not 0 <= layer <= self.encoder.layers:
            raise ValueError(
                f"layer={layer}: {self.model} has the layers 0 to {self.encoder.layers}"
            )

    def _signed(self, key: str) -> str:
        if key == "model":
            return f"{self.encoder.name}@{self.encoder.digest}"
        return super()._signed(key)

    def notes(self) -> list[str]:
        return self.encoder.notes()

    def languages(self) -> dict[str, frozenset[str]]:
        languages = self.encoder.languages
        return {} if languages is None else {f"the encoder {self.encoder.name}": languages}


def distinct_texts(batch: Batch) -> tuple[list[str], Ints, Ints]:
    """Return the distinct texts of a batch of pairs, and where replies and references are."""
    numbers, place = np.unique(np.concatenate([batch.reply, batch.reference]), return_inverse=True)
    texts = [batch.table.texts[i].strip() for i in numbers.tolist()]
    return texts, place[: len(batch)], place[len(batch) :]
