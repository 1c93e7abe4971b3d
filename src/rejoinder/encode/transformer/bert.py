"""The forward pass of the BERT family for many short texts on a CPU: numpy and compiled loops.

Texts lie one after the other without any padding, so that the matrix products, which take nearly
all the time, are few, large and over real tokens only. Query, key and value are one product.
What is between the products runs in one pass each, in buffers that are used again and again, and
attention looks at each text alone, so that no mask is needed. The numbers are those of
transformers up to rounding; torch is not imported, which alone takes longer than some hundred
texts.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.transformer.folder import SHIFTED_POSITIONS, ModelFolder
from rejoinder.encode.transformer.network import check_ids
from rejoinder.encode.transformer.shares import Shares
from rejoinder.encode.transformer.weights import Floats, Weights
from rejoinder.errors import DataError
from rejoinder.kernels.transformer import attend, gelu, normalise, softmax

Ints = NDArray[np.int64]

SHORT = 48
"""Attention of texts up to this length is faster in one loop than as many small products."""


@dataclass(frozen=True)
class _Names:
    """What a family calls its weights, below a prefix of the model's own."""

    layer: str
    query: str
    key: str
    value: str
    attended: str
    attended_norm: str
    inner: str
    outer: str
    outer_norm: str


_BERT = _Names(
    layer="encoder.layer.",
    query="attention.self.query",
    key="attention.self.key",
    value="attention.self.value",
    attended="attention.output.dense",
    attended_norm="attention.output.LayerNorm",
    inner="intermediate.dense",
    outer="output.dense",
    outer_norm="output.LayerNorm",
)
_DISTILBERT = _Names(
    layer="transformer.layer.",
    query="attention.q_lin",
    key="attention.k_lin",
    value="attention.v_lin",
    attended="attention.out_lin",
    attended_norm="sa_layer_norm",
    inner="ffn.lin1",
    outer="ffn.lin2",
    outer_norm="output_layer_norm",
)
_FAMILIES = {
    "bert": _BERT,
    "roberta": _BERT,
    "xlm-roberta": _BERT,
    "camembert": _BERT,
    "distilbert": _DISTILBERT,
}


def open_bert(folder: ModelFolder) -> BertNetwork | None:
    """The network of a model folder; None if it is another kind of network."""
    config = folder.config
    ordinary = (
        config.get("model_type") in _FAMILIES
        and folder.precision == "float32"
        and config.get("hidden_act", config.get("activation", "gelu")) == "gelu"
        and config.get("position_embedding_type", "absolute") == "absolute"
        and not config.get("is_decoder")
        and not config.get("sinusoidal_pos_embds")
        and _heads(folder) > 0
        and folder.dimensions % _heads(folder) == 0
        and all(path.suffix == ".safetensors" for path in folder.weights)
    )
    if not ordinary:
        return None
    weights = Weights(folder, "embeddings.word_embeddings.weight")
    return BertNetwork(folder, weights) if weights.readable else None


def _heads(folder: ModelFolder) -> int:
    return int(folder.config.get("num_attention_heads") or folder.config.get("n_heads") or 0)


class BertNetwork:
    """The embeddings and the layers, which are read as they are asked for."""

    budget = 2048

    def __init__(self, folder: ModelFolder, weights: Weights) -> None:
        config = folder.config
        self._folder, self._weights = folder, weights
        self._names = _FAMILIES[config["model_type"]]
        self._heads = _heads(folder)
        self._epsilon = np.float32(config.get("layer_norm_eps", 1e-12))
        shifted = config["model_type"] in SHIFTED_POSITIONS
        self._padding = int(config.get("pad_token_id") or 0) if shifted else None
        width = folder.dimensions
        self._words = weights.get("embeddings.word_embeddings.weight", None, width)
        self._positions = weights.get("embeddings.position_embeddings.weight", None, width)
        if weights.has("embeddings.token_type_embeddings.weight"):
            # every token of a single text is of type 0
            types = weights.get("embeddings.token_type_embeddings.weight", None, width)
            self._positions = self._positions + types[0]
        nothing = np.zeros(width, np.float32)
        self._norm = _Norm(nothing, *weights.norm("embeddings.LayerNorm", width))
        self._layers: list[_Layer] = []
        self._room: dict[str, Floats] = {}
        self._lock = threading.Lock()

    def run(self, ids: NDArray[np.int32], lengths: Ints, layers: Sequence[int]) -> list[Floats]:
        # the buffers are for one caller at a time
        with self._lock, Shares(lengths) as shares:
            while len(self._layers) < max(layers):
                prefix = f"{self._names.layer}{len(self._layers)}."
                self._layers.append(_Layer(self._folder, self._weights, self._names, prefix))
            hidden = self._embedded(ids, lengths, shares)
            found = {0: hidden.copy()} if 0 in layers else {}
            for number in range(max(layers)):
                hidden = self._through(self._layers[number], hidden, shares)
                if number + 1 in layers:
                    found[number + 1] = hidden.copy()
            return [found[layer] for layer in layers]

    def _embedded(self, ids: NDArray[np.int32], lengths: Ints, shares: Shares) -> Floats:
        check_ids(ids, len(self._words), self._folder)
        width = self._words.shape[1]
        words = np.take(self._words, ids, 0, self._buffer("words", ids.size, width), mode="clip")
        places = _places(ids, lengths, self._padding)
        if places.max() >= len(self._positions):
            raise DataError(
                f"a text of {lengths.max()} tokens is too long for the positions in the weights;"
                " max_position_embeddings of config.json is wrong",
                path=str(self._folder.path),
            )
        there = self._buffer("found", ids.size, width)
        np.take(self._positions, places, 0, there, mode="clip")
        return self._normalised(words, there, self._norm, "first", shares)

    def _through(self, layer: _Layer, hidden: Floats, shares: Shares) -> Floats:
        """One layer: attention, then the two products with the activation between them."""
        split = self._product(hidden, layer.split, "split")
        mixed = self._buffer("mixed", *hidden.shape)
        shares.each(
            lambda first, last: self._attend(layer, split, shares.starts, first, last, mixed)
        )
        found = self._product(mixed, layer.attended, "found")
        middle = self._normalised(found, hidden, layer.attended_norm, "second", shares)
        inner = self._product(middle, layer.inner, "inner")
        shares.rows(lambda rows: gelu(inner[rows], layer.inner_bias))
        found = self._product(inner, layer.outer, "found")
        return self._normalised(found, middle, layer.outer_norm, "first", shares)

    def _attend(
        self, layer: _Layer, split: Floats, starts: Ints, first: int, last: int, out: Floats
    ) -> None:
        """Each token's mixture of the values of its text: [total, 3 d] → [total, d]."""
        size = out.shape[1] // self._heads
        factor = np.float32(size**-0.5)
        if np.diff(starts[first : last + 1]).max() <= SHORT:
            attend(split, layer.query_bias, starts, first, last, self._heads, factor, out)
            return
        for text in range(first, last):
            rows = slice(starts[text], starts[text + 1])
            parts = split[rows].reshape(-1, 3, self._heads, size)
            parts[:, 0] += layer.query_bias.reshape(self._heads, size)
            query, key, value = parts.transpose(1, 2, 0, 3)
            weights = query @ key.transpose(0, 2, 1)
            softmax(weights.reshape(-1, weights.shape[-1]), factor)
            mixed = out[rows].reshape(-1, self._heads, size).transpose(1, 0, 2)
            np.matmul(weights, value, out=mixed)

    def _product(self, rows: Floats, matrix: Floats, into: str) -> Floats:
        out = self._buffer(into, len(rows), matrix.shape[1])
        np.matmul(rows, matrix, out=out)
        return out

    def _normalised(
        self, rows: Floats, others: Floats, norm: _Norm, into: str, shares: Shares
    ) -> Floats:
        out = self._buffer(into, *rows.shape)
        shares.rows(
            lambda part: normalise(
                rows[part],
                others[part],
                norm.bias,
                norm.scale,
                norm.shift,
                self._epsilon,
                out[part],
            )
        )
        return out

    def _buffer(self, name: str, rows: int, columns: int) -> Floats:
        """Memory under a name, the same each time: fresh pages cost as much as a product."""
        there = self._room.get(name)
        if there is None or len(there) < rows:
            there = self._room[name] = np.empty((rows, columns), np.float32)
        return there[:rows]


@dataclass(frozen=True)
class _Norm:
    """What is added to a product, and the scale and shift of the norm that follows."""

    bias: Floats
    scale: Floats
    shift: Floats


class _Layer:
    """The weights of one layer."""

    def __init__(self, folder: ModelFolder, weights: Weights, names: _Names, prefix: str) -> None:
        width = folder.dimensions
        inner = int(folder.config.get("intermediate_size") or folder.config["hidden_dim"])
        query, self.query_bias = weights.linear(prefix + names.query, width, width)
        # the bias of the keys would add the same to all scores of a token, so it has no effect;
        # that of the values passes through the mixture, whose weights add up to one
        key, _ = weights.linear(prefix + names.key, width, width)
        value, value_bias = weights.linear(prefix + names.value, width, width)
        self.split = np.concatenate([query, key, value], axis=1)
        self.attended, bias = weights.linear(prefix + names.attended, width, width)
        bias = bias + value_bias @ self.attended
        self.attended_norm = _Norm(bias, *weights.norm(prefix + names.attended_norm, width))
        self.inner, self.inner_bias = weights.linear(prefix + names.inner, width, inner)
        self.outer, bias = weights.linear(prefix + names.outer, inner, width)
        self.outer_norm = _Norm(bias, *weights.norm(prefix + names.outer_norm, width))


def _places(
    ids: NDArray[np.int32], lengths: NDArray[np.int64], padding: int | None
) -> NDArray[np.int64]:
    """The position of each token in its text.

    The RoBERTa family counts from behind the number of the padding token, and does not count a
    padding token that stands in the text itself.
    """
    starts = np.cumsum(lengths) - lengths
    if padding is None:
        return np.arange(ids.size) - np.repeat(starts, lengths)
    counted = ids != padding
    before = np.concatenate([[0], np.cumsum(counted)])
    numbers = before[1:] - np.repeat(before[starts], lengths)
    places: Ints = numbers * counted + padding
    return places
