"""The forward pass of BERT-like encoders for many short texts on a CPU: numpy and compiled loops.

Texts are concatenated without padding, so that the matrix products, which take nearly all the
time, are few, large and over real tokens only. Query, key and value are one product. Everything
between the products runs in one pass each, in buffers that are reused, and attention is computed
text by text, so that no mask is needed. The results are those of transformers up to rounding;
torch is not imported, which alone takes longer than encoding some hundred texts.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.transformer.families import BERT_LIKE, SHIFTED_POSITIONS, TensorNames
from rejoinder.encode.transformer.model_folder import ModelFolder
from rejoinder.encode.transformer.network import check_ids
from rejoinder.encode.transformer.threads import TextShards
from rejoinder.encode.transformer.weights import Floats, Weights
from rejoinder.errors import DataError
from rejoinder.kernels.transformer import add_and_norm, attend, gelu, softmax

Ints = NDArray[np.int64]

SHORT = 48
"""Up to this number of tokens, attention is faster in one loop than as many small products."""


def open_bert(folder: ModelFolder) -> BertNetwork | None:
    """Return the network of a model folder, or None if it is of another kind."""
    config = folder.config
    ordinary = (
        folder.model_type in BERT_LIKE
        and folder.precision == "float32"
        and config.get("hidden_act", config.get("activation", "gelu")) == "gelu"
        and config.get("position_embedding_type", "absolute") == "absolute"
        and not config.get("is_decoder")
        and not config.get("sinusoidal_pos_embds")
        and folder.dimensions % _num_heads(folder) == 0
    )
    if not ordinary:
        return None
    weights = Weights(folder, "embeddings.word_embeddings.weight")
    return BertNetwork(folder, weights) if weights.readable else None


def _num_heads(folder: ModelFolder) -> int:
    return folder.size("num_attention_heads", "n_heads")


def _epsilon(folder: ModelFolder) -> np.float32:
    value = folder.config.get("layer_norm_eps", 1e-12)
    if not isinstance(value, int | float) or not 0 <= value < 1:
        raise folder.wrong(f"layer_norm_eps is {value!r:.40}; expected a small number")
    return np.float32(value)


class BertNetwork:
    """The embeddings, and the layers, which are read when they are first needed."""

    batch_tokens = 2048

    def __init__(self, folder: ModelFolder, weights: Weights) -> None:
        self._folder, self._weights = folder, weights
        self._names = BERT_LIKE[folder.model_type]
        self._num_heads = _num_heads(folder)
        self._epsilon = _epsilon(folder)
        self._padding = folder.padding if folder.model_type in SHIFTED_POSITIONS else None
        hidden_size = folder.dimensions
        self._words = weights.get("embeddings.word_embeddings.weight", None, hidden_size)
        self._positions = weights.get("embeddings.position_embeddings.weight", None, hidden_size)
        if weights.has("embeddings.token_type_embeddings.weight"):
            # every token of a single text is of type 0
            types = weights.get("embeddings.token_type_embeddings.weight", None, hidden_size)
            self._positions = self._positions + types[:1]
        no_bias = np.zeros(hidden_size, np.float32)
        self._norm = _Norm(no_bias, *weights.norm("embeddings.LayerNorm", hidden_size))
        self._layers: list[_Layer] = []
        self._buffers: dict[str, Floats] = {}
        self._lock = threading.Lock()

    def run(self, ids: NDArray[np.int32], lengths: Ints, layers: Sequence[int]) -> list[Floats]:
        """Return for each layer the token vectors of texts that are sorted by length."""
        # the buffers are for one caller at a time; the encoder refuses vectors that overflow
        with (
            self._lock,
            np.errstate(over="ignore", invalid="ignore"),
            TextShards(lengths) as shards,
        ):
            while len(self._layers) < max(layers):
                prefix = f"{self._names.layer}{len(self._layers)}."
                self._layers.append(_Layer(self._folder, self._weights, self._names, prefix))
            hidden = self._embed(ids, lengths, shards)
            outputs = {0: hidden.copy()} if 0 in layers else {}
            for number in range(max(layers)):
                hidden = self._run_layer(self._layers[number], hidden, shards)
                if number + 1 in layers:
                    outputs[number + 1] = hidden.copy()
            return [outputs[layer] for layer in layers]

    def _embed(self, ids: NDArray[np.int32], lengths: Ints, shards: TextShards) -> Floats:
        check_ids(ids, len(self._words), self._folder)
        hidden_size = self._words.shape[1]
        words = self._buffer("words", ids.size, hidden_size)
        np.take(self._words, ids, 0, words, mode="clip")
        places = _position_ids(ids, lengths, self._padding)
        if places.max() >= len(self._positions):
            raise DataError(
                f"a text of {lengths.max()} tokens is too long for the positions in the weights;"
                " max_position_embeddings of config.json is wrong",
                path=str(self._folder.path),
            )
        positions = self._buffer("product", ids.size, hidden_size)
        np.take(self._positions, places, 0, positions, mode="clip")
        return self._add_and_norm(words, positions, self._norm, "output", shards)

    def _run_layer(self, layer: _Layer, hidden: Floats, shards: TextShards) -> Floats:
        """Attention, then the two products with the activation between them."""
        qkv = self._product(hidden, layer.qkv, "qkv")
        mixed = self._buffer("mixed", *hidden.shape)
        shards.map_texts(
            lambda first, last: self._attend(layer, qkv, shards.starts, first, last, mixed)
        )
        product = self._product(mixed, layer.attention_output, "product")
        middle = self._add_and_norm(product, hidden, layer.attention_norm, "middle", shards)
        inner = self._product(middle, layer.intermediate, "inner")
        shards.map_tokens(lambda rows: gelu(inner[rows], layer.intermediate_bias))
        product = self._product(inner, layer.output, "product")
        return self._add_and_norm(product, middle, layer.output_norm, "output", shards)

    def _attend(
        self, layer: _Layer, qkv: Floats, starts: Ints, first: int, last: int, out: Floats
    ) -> None:
        """Write the attention output of each token of some texts, [total, 3 d] → [total, d]."""
        size = out.shape[1] // self._num_heads
        factor = np.float32(size**-0.5)
        if np.diff(starts[first : last + 1]).max() <= SHORT:
            attend(qkv, layer.query_bias, starts, first, last, self._num_heads, factor, out)
            return
        for text in range(first, last):
            rows = slice(starts[text], starts[text + 1])
            parts = qkv[rows].reshape(-1, 3, self._num_heads, size)
            parts[:, 0] += layer.query_bias.reshape(self._num_heads, size)
            query, key, value = parts.transpose(1, 2, 0, 3)
            weights = query @ key.transpose(0, 2, 1)
            softmax(weights.reshape(-1, weights.shape[-1]), factor)
            mixed = out[rows].reshape(-1, self._num_heads, size).transpose(1, 0, 2)
            np.matmul(weights, value, out=mixed)

    def _product(self, rows: Floats, matrix: Floats, buffer: str) -> Floats:
        out = self._buffer(buffer, len(rows), matrix.shape[1])
        np.matmul(rows, matrix, out=out)
        return out

    def _add_and_norm(
        self, rows: Floats, residual: Floats, norm: _Norm, buffer: str, shards: TextShards
    ) -> Floats:
        out = self._buffer(buffer, *rows.shape)
        shards.map_tokens(
            lambda part: add_and_norm(
                rows[part],
                residual[part],
                norm.bias,
                norm.scale,
                norm.shift,
                self._epsilon,
                out[part],
            )
        )
        return out

    def _buffer(self, name: str, rows: int, columns: int) -> Floats:
        """Return memory that is reused: fresh pages cost as much time as a product."""
        buffer = self._buffers.get(name)
        if buffer is None or len(buffer) < rows:
            buffer = self._buffers[name] = np.empty((rows, columns), np.float32)
        return buffer[:rows]


@dataclass(frozen=True)
class _Norm:
    """The bias of a product, and the scale and shift of the layer norm that follows it."""

    bias: Floats
    scale: Floats
    shift: Floats


class _Layer:
    """The weights of one layer."""

    def __init__(
        self, folder: ModelFolder, weights: Weights, names: TensorNames, prefix: str
    ) -> None:
        hidden_size = folder.dimensions
        inner_size = folder.size("intermediate_size", "hidden_dim")
        query, self.query_bias = weights.linear(prefix + names.query, hidden_size, hidden_size)
        # the bias of the keys adds the same to all scores of a token, so it has no effect; that
        # of the values passes through the mixture, whose weights add up to one
        key, _ = weights.linear(prefix + names.key, hidden_size, hidden_size)
        value, value_bias = weights.linear(prefix + names.value, hidden_size, hidden_size)
        self.qkv = np.concatenate([query, key, value], axis=1)
        self.attention_output, bias = weights.linear(
            prefix + names.attention_output, hidden_size, hidden_size
        )
        bias = bias + value_bias @ self.attention_output
        self.attention_norm = _Norm(bias, *weights.norm(prefix + names.attention_norm, hidden_size))
        self.intermediate, self.intermediate_bias = weights.linear(
            prefix + names.intermediate, hidden_size, inner_size
        )
        self.output, bias = weights.linear(prefix + names.output, inner_size, hidden_size)
        self.output_norm = _Norm(bias, *weights.norm(prefix + names.output_norm, hidden_size))


def _position_ids(
    ids: NDArray[np.int32], lengths: NDArray[np.int64], padding: int | None
) -> NDArray[np.int64]:
    """Return the position of each token in its text.

    The RoBERTa family counts from ``padding + 1`` on, and does not count a padding token that
    occurs in the text itself.
    """
    starts = np.cumsum(lengths) - lengths
    if padding is None:
        return np.arange(ids.size) - np.repeat(starts, lengths)
    counted = ids != padding
    before = np.concatenate([[0], np.cumsum(counted)])
    numbers = before[1:] - np.repeat(before[starts], lengths)
    positions: Ints = numbers * counted + padding
    return positions
