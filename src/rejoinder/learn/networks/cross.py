"""An encoder that reads texts together, and is fine-tuned: BERT's natural form.

    [CLS] turn [SEP] utterance [SEP] reply [SEP]      the scorer (Ghazarian et al. 2019)
    [CLS] U1 [SEP] R1 [SEP] R2 [SEP]                  the rater (Tsuta et al. 2023)

The last text, which is asked about, is the second sentence in BERT's sense. Texts come as rows of
token numbers with nothing (``NONE``) behind their ends; they are joined here, so that any two
can be.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from rejoinder.encode.transformer.pieces import quiet_transformers
from rejoinder.learn.checkpoint import Model
from rejoinder.learn.networks.raters import CLASSES, Two
from rejoinder.learn.networks.scorers import Perceptron, repeated

NONE = -1
"""No token."""
AT_ONCE = 4096
"""Tokens that the encoder is given together, padding included: rows of one length, since
wrong replies are not as long as right ones."""


NOT_OURS = {"_name_or_path", "transformers_version"}
"""What transformers notes of the machine: no part of the network, and nobody's business."""


class CrossReader(nn.Module):
    """Joined texts → their vectors: that of the first token, and the mean."""

    def __init__(self, network: Any, start: int, end: int, frozen: int) -> None:
        super().__init__()
        if getattr(network, "pooler", None) is not None:
            network.pooler = None  # a vector for guessing sentences, which nobody asks for
        self.network = network
        self.start, self.end = start, end
        self.padding = int(network.config.pad_token_id or 0)
        self.typed = getattr(network.config, "type_vocab_size", 0) > 1
        self.width = 2 * int(network.config.hidden_size)
        for weight in lower_layers(network, frozen):
            weight.requires_grad_(False)

    def forward(self, known: Sequence[Tensor], asked: Tensor) -> Tensor:
        """[n, length] token numbers of each text → [n, 2 · hidden]"""
        ids, types = self._joined(known, asked)
        lengths = (ids != NONE).sum(1)
        order = torch.argsort(lengths, stable=True)
        parts = [self._read(ids[rows], types[rows]) for rows in _chunks(order, lengths)]
        return torch.cat(parts)[torch.argsort(order)]

    def _joined(self, known: Sequence[Tensor], asked: Tensor) -> Two:
        start = asked.new_full((len(asked), 1), self.start)
        end = asked.new_full((len(asked), 1), self.end)
        first = [part for text in known for part in (text, end)]
        ids = torch.cat([start, *first, asked, end], dim=1)
        types = torch.zeros_like(ids)
        types[:, -asked.shape[1] - 1 :] = 1
        # tokens move to the left, over the places where there is none
        order = torch.argsort((ids == NONE).int(), dim=1, stable=True)
        return ids.gather(1, order), types.gather(1, order)

    def _read(self, ids: Tensor, types: Tensor) -> Tensor:
        width = int((ids != NONE).sum(1).max())
        ids, types = ids[:, :width], types[:, :width]
        there = ids != NONE
        extra = {"token_type_ids": types} if self.typed else {}
        found = self.network(
            input_ids=ids.masked_fill(~there, self.padding), attention_mask=there.long(), **extra
        )[0]
        mask = there.unsqueeze(2).to(found.dtype)
        return torch.cat([found[:, 0], (found * mask).sum(1) / mask.sum(1)], dim=1)


class CrossModel(Model):
    """What scorer and rater share: a file of theirs holds the whole encoder."""

    outputs: int

    def __init__(
        self,
        network: Any,
        *,
        start: int,
        end: int,
        frozen: int = 0,
        wide: int = 256,
        dropout: float = 0.1,
    ) -> None:
        """``network`` is of transformers, or its configuration: then with weights yet to come."""
        super().__init__()
        if isinstance(network, dict):
            network = _built(network)
        self.config: dict[str, Any] = {
            "network": _plain(network.config),
            "start": start, "end": end, "frozen": frozen, "wide": wide, "dropout": dropout,
        }  # fmt: skip
        self.reader = CrossReader(network, start, end, frozen)

    @classmethod
    def build(cls, config: Any) -> Self:
        with torch.random.fork_rng(devices=[]):
            return cls(**config)


class CrossScorer(CrossModel):
    def __init__(self, network: Any, **settings: Any) -> None:
        super().__init__(network, **settings)
        self.judge = Perceptron(self.reader.width, self.config["wide"], self.config["dropout"])

    def forward(self, contexts: Tensor, replies: Tensor) -> Tensor:
        """Token numbers → [replies] scores before the sigmoid."""
        scores: Tensor = self.judge(self.reader([repeated(contexts, replies)], replies))
        return scores


class CrossRater(CrossModel):
    def __init__(self, network: Any, **settings: Any) -> None:
        super().__init__(network, **settings)
        self.judge = nn.Sequential(
            nn.Linear(self.reader.width, self.config["wide"]),
            nn.Tanh(),
            nn.Dropout(self.config["dropout"]),
            nn.Linear(self.config["wide"], CLASSES),
        )

    def forward(self, u1: Tensor, r1: Tensor, u2: Tensor, r2: Tensor) -> Two:
        """Token numbers of the four texts → [m, 2] scores of each triplet."""
        u1, r1 = repeated(u1, r2), repeated(r1, r2)
        return self.judge(self.reader([u1, r1], r2)), self.judge(self.reader([u2, r2], r1))


def lower_layers(network: Any, count: int) -> Iterator[nn.Parameter]:
    """The weights of the first layers and of what is below them; none if there are none."""
    if not count:
        return
    holder = getattr(network, "encoder", None) or getattr(network, "transformer", network)
    layers = getattr(holder, "layer", None)
    if layers is None or not hasattr(network, "embeddings"):
        raise TypeError(f"the layers of a {type(network).__name__} can't be told apart")
    yield from network.embeddings.parameters()
    for layer in layers[:count]:
        yield from layer.parameters()


def _chunks(order: Tensor, lengths: Tensor) -> Iterator[Tensor]:
    """Rows from the shortest to the longest, cut so that each part has at most AT_ONCE tokens."""
    sorted_lengths = lengths[order].tolist()
    start = 0
    for place, length in enumerate(sorted_lengths):
        if place > start and (place + 1 - start) * length > AT_ONCE:
            yield order[start:place]
            start = place
    yield order[start:]


def _plain(config: Any) -> dict[str, Any]:
    """What the network is, without where its weights lay and what they were read with."""
    known: dict[str, Any] = json.loads(config.to_json_string(use_diff=False))
    return {key: value for key, value in known.items() if key not in NOT_OURS}


def _built(config: dict[str, Any]) -> Any:
    quiet_transformers()
    import transformers

    known = {key: value for key, value in config.items() if key != "model_type"}
    made = transformers.AutoConfig.for_model(config["model_type"], **known)
    text_only = type(made) in transformers.MODEL_FOR_TEXT_ENCODING_MAPPING
    kind: Any = transformers.AutoModelForTextEncoding if text_only else transformers.AutoModel
    return kind.from_config(made)
