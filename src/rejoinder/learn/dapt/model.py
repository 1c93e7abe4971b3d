"""A masked language model: an encoder, and a head that guesses what was hidden from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rejoinder.encode.transformer.folder import ModelFolder
from rejoinder.learn.checkpoint import fill, read, write
from rejoinder.learn.dapt.batches import MaskedBatch

HEAD = "mlm-head.safetensors"

_NAMES = {
    "cls.predictions.transform.dense.": "dense.",
    "cls.predictions.transform.LayerNorm.": "norm.",
    "cls.predictions.bias": "bias",
    "lm_head.dense.": "dense.",
    "lm_head.layer_norm.": "norm.",
    "lm_head.bias": "bias",
}
"""What BERT and RoBERTa call the parts of their heads, and we of ours."""


class Head(nn.Module):
    """BERT's: a dense layer, the activation, a norm; then the embeddings of the input, again.

    Since the decoder is tied to the embeddings and adds only a bias for each token, the head has
    few weights of its own.
    """

    def __init__(
        self, hidden: int, embedding: int, words: int, activation: str, epsilon: float
    ) -> None:
        super().__init__()
        from transformers.activations import ACT2FN

        self.dense = nn.Linear(hidden, embedding)
        self.activation = ACT2FN[activation]
        self.norm = nn.LayerNorm(embedding, eps=epsilon)
        self.bias = nn.Parameter(torch.zeros(words))

    def forward(self, vectors: Tensor, table: Tensor) -> Tensor:
        """[n, hidden] vectors, [words, d] embeddings → [n, words] scores"""
        found: Tensor = self.norm(self.activation(self.dense(vectors)))
        return nn.functional.linear(found, table, self.bias)


class MaskedModel(nn.Module):
    """An encoder of transformers with such a head."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        config = encoder.config
        self.encoder = encoder
        self._typed = getattr(config, "type_vocab_size", 0) > 1
        words, embedding = self.table.shape
        self.head = Head(
            config.hidden_size,
            embedding,
            words,
            str(getattr(config, "hidden_act", None) or getattr(config, "activation", "gelu")),
            getattr(config, "layer_norm_eps", 1e-12),
        )
        nn.init.normal_(self.head.dense.weight, std=getattr(config, "initializer_range", 0.02))
        nn.init.zeros_(self.head.dense.bias)
        for name, weight in encoder.named_parameters():
            if "pooler" in name:  # makes one vector of a text, and has no part in guessing
                weight.requires_grad_(False)

    @property
    def table(self) -> Tensor:
        """[words, d] the embeddings of the input."""
        weight: Tensor = self.encoder.get_input_embeddings().weight
        return weight

    def forward(self, batch: MaskedBatch) -> Tensor:
        """[m, words] scores for the hidden tokens only: the others need none."""
        extra = {"token_type_ids": batch.types} if self._typed else {}
        found = self.encoder(input_ids=batch.ids, attention_mask=batch.attention, **extra)
        scores: Tensor = self.head(found[0].flatten(0, 1)[batch.places], self.table)
        return scores


def guessing_loss(model: nn.Module, batch: MaskedBatch) -> tuple[Tensor, float]:
    """Cross entropy, summed over the hidden tokens, and how many they are."""
    loss = nn.functional.cross_entropy(model(batch), batch.truth, reduction="sum")
    return loss, float(len(batch.truth))


def find_head(model: MaskedModel, folder: ModelFolder) -> str:
    """Give the model the head that its folder has, if any.

    Returns where it is from: ``adapted`` (we put it there), ``model``, or ``fresh``.
    """
    path = folder.path / HEAD
    if path.is_file():
        tensors, _ = read(path)
        fill(model.head, tensors, path)
        return "adapted"
    tensors = {}
    for path in folder.weights:
        if path.suffix == ".safetensors":
            tensors |= _head_in(path)
    if tensors.keys() != model.head.state_dict().keys():
        return "fresh"
    fill(model.head, tensors, folder.path)
    return "model"


def save_head(folder: Path, model: MaskedModel) -> None:
    write(folder / HEAD, model.head.state_dict(), {"part": "head of a masked language model"})


def _head_in(path: Path) -> dict[str, Tensor]:
    from safetensors import safe_open

    found = {}
    with safe_open(str(path), framework="pt") as file:
        for name in file.keys():  # noqa: SIM118
            for theirs, ours in _NAMES.items():
                if name.startswith(theirs):
                    found[ours + name.removeprefix(theirs)] = file.get_tensor(name).float()
    return found
