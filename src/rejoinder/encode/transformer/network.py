"""The interface of networks: token ids in, token vectors out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.transformer.model_folder import ModelFolder
from rejoinder.errors import DataError

Floats = NDArray[np.float32]


class Network(Protocol):
    """A network that reads concatenated texts, without padding."""

    batch_tokens: int
    """Number of tokens of a batch, padding included, at which the network is fastest."""

    def run(
        self, ids: NDArray[np.int32], lengths: NDArray[np.int64], layers: Sequence[int]
    ) -> list[Floats]:
        """Return for each layer [total, d] token vectors of texts that are sorted by length."""


def check_ids(ids: NDArray[np.int32], vocabulary: int, folder: ModelFolder) -> None:
    """Refuse token ids for which the network has no vectors: the tokenizer is another model's."""
    if ids.max() >= vocabulary or ids.min() < 0:
        raise DataError(
            f"the tokenizer has token {ids.max()}, but the weights have {vocabulary} tokens",
            path=str(folder.path),
        )
