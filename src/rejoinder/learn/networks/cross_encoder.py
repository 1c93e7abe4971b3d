"""A transformer that reads texts together and is fine-tuned.

    [CLS] turn [SEP] utterance [SEP] reply [SEP]      the scorer (Ghazarian et al. 2019)
    [CLS] U1 [SEP] R1 [SEP] R2 [SEP]                  the rater (Tsuta et al. 2023)

The last text, the candidate, is the second segment in BERT's sense. Texts come as rows of token
ids, padded with ``NO_TOKEN``; they are joined here, so that any two can be combined.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from rejoinder.encode.transformer.tokenizer import quiet_transformers
from rejoinder.errors import DataError
from rejoinder.learn.checkpoint import Model
from rejoinder.learn.networks.raters import CLASSES, TwoTensors
from rejoinder.learn.networks.scorers import Perceptron, repeat_rows

NO_TOKEN = -1
"""Padding."""
MAX_BATCH_TOKENS = 4096
"""Tokens that the transformer reads at once, padding included: rows are sorted by length, because
negatives are not as long as true replies."""


NOT_SAVED = {"_name_or_path", "transformers_version", "auto_map"}
"""Entries of a configuration that concern the machine, not the network."""


class CrossReader(nn.Module):
    """Joined texts → the vector of the first token and the mean over all tokens."""

    def __init__(
        self, network: Any, cls_token_id: int, sep_token_id: int, frozen_layers: int
    ) -> None:
        super().__init__()
        if getattr(network, "pooler", None) is not None:
            network.pooler = None  # not used
        self.network = network
        self.cls_token_id, self.sep_token_id = cls_token_id, sep_token_id
        config = network.config
        self.padding = int(config.pad_token_id or 0)
        self.vocab_size = int(config.vocab_size)
        self.max_tokens = int(getattr(config, "max_position_embeddings", 0) or 10**6)
        self.has_segments = getattr(config, "type_vocab_size", 0) > 1
        self.output_size = 2 * int(config.hidden_size)
        for parameter in lower_layers(network, frozen_layers):
            parameter.requires_grad_(False)

    def forward(self, texts: Sequence[Tensor], candidate: Tensor) -> Tensor:
        """[n, length] token ids of each text → [n, 2 · hidden_size]"""
        ids, segments = self._join(texts, candidate)
        lengths = (ids != NO_TOKEN).sum(1)
        order = torch.argsort(lengths, stable=True)
        parts = [self._read(ids[rows], segments[rows]) for rows in _chunks(order, lengths)]
        return torch.cat(parts)[torch.argsort(order)]

    def _join(self, texts: Sequence[Tensor], candidate: Tensor) -> TwoTensors:
        start = candidate.new_full((len(candidate), 1), self.cls_token_id)
        end = candidate.new_full((len(candidate), 1), self.sep_token_id)
        first = [part for text in texts for part in (text, end)]
        ids = torch.cat([start, *first, candidate, end], dim=1)
        segments = torch.zeros_like(ids)
        segments[:, -candidate.shape[1] - 1 :] = 1
        # move tokens to the left, over the padding between texts
        order = torch.argsort((ids == NO_TOKEN).int(), dim=1, stable=True)
        return ids.gather(1, order), segments.gather(1, order)

    def _read(self, ids: Tensor, segments: Tensor) -> Tensor:
        length = int((ids != NO_TOKEN).sum(1).max())
        ids, segments = ids[:, :length], segments[:, :length]
        is_token = ids != NO_TOKEN
        extra = {"token_type_ids": segments} if self.has_segments else {}
        vectors = self.network(
            input_ids=ids.masked_fill(~is_token, self.padding),
            attention_mask=is_token.long(),
            **extra,
        )[0]
        mask = is_token.unsqueeze(2).to(vectors.dtype)
        return torch.cat([vectors[:, 0], (vectors * mask).sum(1) / mask.sum(1)], dim=1)


class CrossModel(Model):
    """Base of scorer and rater; their files contain the whole transformer."""

    def __init__(
        self,
        network: Any,
        *,
        cls_token_id: int,
        sep_token_id: int,
        frozen_layers: int = 0,
        hidden_size: int = 256,
        dropout: float = 0.1,
    ) -> None:
        """``network`` is a model of transformers, or its configuration: then without weights."""
        super().__init__()
        if isinstance(network, dict):
            network = _build_network(network)
        self.config: dict[str, Any] = {
            "network": _network_config(network.config),
            "cls_token_id": cls_token_id, "sep_token_id": sep_token_id,
            "frozen_layers": frozen_layers, "hidden_size": hidden_size, "dropout": dropout,
        }  # fmt: skip
        self.reader = CrossReader(network, cls_token_id, sep_token_id, frozen_layers)

    @classmethod
    def build(cls, config: Any) -> Self:
        with torch.random.fork_rng(devices=[]):
            return cls(**config)


class CrossScorer(CrossModel):
    """The unreferenced scorer."""

    def __init__(self, network: Any, **settings: Any) -> None:
        super().__init__(network, **settings)
        self.mlp = Perceptron(
            self.reader.output_size, self.config["hidden_size"], self.config["dropout"]
        )

    def forward(self, contexts: Tensor, replies: Tensor) -> Tensor:
        """Token ids → [replies] logits."""
        logits: Tensor = self.mlp(self.reader([repeat_rows(contexts, replies)], replies))
        return logits


class CrossRater(CrossModel):
    """The NN-rater."""

    def __init__(self, network: Any, **settings: Any) -> None:
        super().__init__(network, **settings)
        self.mlp = nn.Sequential(
            nn.Linear(self.reader.output_size, self.config["hidden_size"]),
            nn.Tanh(),
            nn.Dropout(self.config["dropout"]),
            nn.Linear(self.config["hidden_size"], CLASSES),
        )

    def forward(self, u1: Tensor, r1: Tensor, u2: Tensor, r2: Tensor) -> TwoTensors:
        """Token ids of the four texts → [m, 2] logits of each triplet."""
        u1, r1 = repeat_rows(u1, r2), repeat_rows(r1, r2)
        return self.mlp(self.reader([u1, r1], r2)), self.mlp(self.reader([u2, r2], r1))


def lower_layers(network: Any, count: int) -> Iterator[nn.Parameter]:
    """Yield the parameters of the embeddings and the first layers; none if ``count`` is 0."""
    if not count:
        return
    holder = getattr(network, "encoder", None) or getattr(network, "transformer", network)
    layers = getattr(holder, "layer", None)
    if layers is None or not hasattr(network, "embeddings"):
        raise TypeError(f"the layers of {type(network).__name__} cannot be frozen")
    yield from network.embeddings.parameters()
    for layer in layers[:count]:
        yield from layer.parameters()


def _chunks(order: Tensor, lengths: Tensor) -> Iterator[Tensor]:
    """Yield rows, shortest first, in chunks of at most MAX_BATCH_TOKENS tokens."""
    sorted_lengths = lengths[order].tolist()
    start = 0
    for place, length in enumerate(sorted_lengths):
        if place > start and (place + 1 - start) * length > MAX_BATCH_TOKENS:
            yield order[start:place]
            start = place
    yield order[start:]


def _network_config(config: Any) -> dict[str, Any]:
    """Return the configuration without the machine's paths and versions."""
    entries: dict[str, Any] = json.loads(config.to_json_string(use_diff=False))
    return {key: value for key, value in entries.items() if key not in NOT_SAVED}


def _build_network(config: dict[str, Any]) -> Any:
    """Return a transformer of this configuration; only classes of transformers are built."""
    quiet_transformers()
    import transformers

    model_type = config.get("model_type")
    if not isinstance(model_type, str):
        raise DataError("the configuration of the transformer has no model_type")
    skipped = {"model_type", *NOT_SAVED}
    entries = {key: value for key, value in config.items() if key not in skipped}
    made = transformers.AutoConfig.for_model(model_type, **entries)
    text_only = type(made) in transformers.MODEL_FOR_TEXT_ENCODING_MAPPING
    kind: Any = transformers.AutoModelForTextEncoding if text_only else transformers.AutoModel
    return kind.from_config(made, trust_remote_code=False)
