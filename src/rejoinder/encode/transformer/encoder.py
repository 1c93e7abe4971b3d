"""Text and token vectors of a transformer; each distinct text is encoded once and then cached."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.transformer.batching import length_batches, select_texts
from rejoinder.encode.transformer.find_model import (
    DEFAULT_MODEL,
    find_model_folder,
    split_precision,
)
from rejoinder.encode.transformer.model_folder import ModelFolder
from rejoinder.encode.transformer.network import Floats, Network
from rejoinder.encode.transformer.tokenizer import (
    SubwordTokenizer,
    TokenizedTexts,
    open_tokenizer,
)
from rejoinder.errors import DataError, UsageError
from rejoinder.files.cache import Cache, key_of, open_cache
from rejoinder.progress import Progress
from rejoinder.text.distinct import distinct

Ints = NDArray[np.int64]

POOLINGS = ("mean", "cls")
ARITHMETIC = 1
"""Part of every cache key; to be increased by a change that changes the vectors."""
CHUNK = 4096
"""Distinct texts that are looked up in the cache and sorted together."""


@dataclass(frozen=True)
class TokenVectors:
    """The tokens of several texts with their vectors, concatenated."""

    ids: NDArray[np.int32]
    """[total] token ids, special tokens included"""
    vectors: Floats
    """[total, d], not normalised"""
    starts: Ints
    """[n + 1] where each text begins"""


class Encoder:
    """A network with its tokenizer; both are opened when they are first used.

    A text that is too long is truncated: to ``max_tokens`` for token vectors, to
    ``max_sentence_tokens`` for sentence vectors, as in bert-score and sentence-transformers.
    """

    def __init__(self, name: str = DEFAULT_MODEL) -> None:
        self.name = name
        model, precision = split_precision(name)
        self._folder = ModelFolder(name, find_model_folder(model), precision)
        self.digest = self._folder.digest(self.cache)
        self.dimensions = self._folder.dimensions
        self.layers = self._folder.layers
        self.max_tokens = self._folder.max_tokens
        self.max_sentence_tokens = self._folder.max_sentence_tokens
        self._truncated: set[bytes] = set()

    @property
    def cache(self) -> Cache:
        """The cache of vectors."""
        return open_cache()

    @property
    def languages(self) -> frozenset[str] | None:
        """ISO 639-1 codes of the languages that the model was trained on; None if unknown."""
        return self._folder.languages

    @property
    def truncated(self) -> int:
        """Number of distinct texts that were truncated in this process, cached ones included."""
        return len(self._truncated)

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """The tokens around every text, such as [CLS] and [SEP]."""
        return self._tokenizer.special_ids(self.max_tokens)

    def notes(self) -> list[str]:
        """Return sentences that the user should read: truncated texts, problems of the cache."""
        lines = self.cache.notes()
        if self.truncated:
            texts = "text was" if self.truncated == 1 else "texts were"
            lines.insert(0, f"model {self.name}: {self.truncated:,} {texts} too long and truncated")
        return lines

    def sentences(
        self,
        texts: Sequence[str],
        *,
        layer: int | None = None,
        pooling: str = "mean",
        on_progress: Progress | None = None,
    ) -> Floats:
        """Return [n, d] a vector of length 1 for each text.

        Pooling takes the mean over all tokens, special ones included, or the vector of the first
        token (``cls``). A text without tokens, which few tokenizers allow, has the zero vector.
        """
        return self.layered(texts, [layer], pooling=pooling, on_progress=on_progress)[0]

    def layered(
        self,
        texts: Sequence[str],
        layers: Sequence[int | None],
        *,
        pooling: str = "mean",
        on_progress: Progress | None = None,
    ) -> list[Floats]:
        """Return the sentence vectors of several layers, in one forward pass if possible."""
        if pooling not in POOLINGS:
            raise UsageError(f"pooling '{pooling}' is none of {', '.join(POOLINGS)}")
        unique, rows = distinct(texts)
        pool = _mean_pooling if pooling == "mean" else _first_token_pooling

        def entries(ids: NDArray[np.int32], vectors: Floats, lengths: Ints) -> list[bytes]:
            return [row.tobytes() for row in _unit_rows(pool(vectors, lengths))]

        checked = tuple(map(self._checked_layer, layers))
        task = _Task(pooling, checked, self.max_sentence_tokens, entries)
        by_layer: list[Floats] = [
            np.empty((len(unique), self.dimensions), np.float32) for _ in layers
        ]
        for number, row, data in self._run(unique, task, on_progress):
            by_layer[number][row] = np.frombuffer(data, np.float32) if data else 0
        if len(unique) == len(texts):
            return by_layer
        return [vectors[rows] for vectors in by_layer]

    def tokens(
        self,
        texts: Sequence[str],
        *,
        layer: int | None = None,
        on_progress: Progress | None = None,
    ) -> TokenVectors:
        """Return the vectors of all tokens of each text."""
        unique, rows = distinct(texts)

        def entries(ids: NDArray[np.int32], vectors: Floats, lengths: Ints) -> list[bytes]:
            ends = np.cumsum(lengths)
            spans = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
            return [ids[a:b].tobytes() + vectors[a:b].tobytes() for a, b in spans]

        task = _Task("tokens", (self._checked_layer(layer),), self.max_tokens, entries)
        stored: list[bytes] = [b""] * len(unique)
        for _, row, data in self._run(unique, task, on_progress):
            stored[row] = data
        return self._concatenate([stored[row] for row in rows])

    def token_ids(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], Ints]:
        """Return the tokens alone, as :meth:`tokens` has them: [total] ids and [n + 1] starts."""
        tokenized = self._tokenize(texts, self.max_tokens)
        return tokenized.ids, tokenized.starts

    def _concatenate(self, entries: list[bytes]) -> TokenVectors:
        size = 4 * (1 + self.dimensions)
        starts = np.zeros(len(entries) + 1, np.int64)
        np.cumsum([len(data) // size for data in entries], out=starts[1:])
        ids = np.empty(starts[-1], np.int32)
        vectors = np.empty((starts[-1], self.dimensions), np.float32)
        for data, (start, end) in zip(entries, pairwise(starts.tolist()), strict=True):
            count = end - start
            ids[start:end] = np.frombuffer(data, np.int32, count)
            flat = np.frombuffer(data, np.float32, offset=4 * count)
            vectors[start:end] = flat.reshape(count, self.dimensions)
        return TokenVectors(ids, vectors, starts)

    def _run(
        self, texts: list[str], task: _Task, on_progress: Progress | None
    ) -> Iterator[tuple[int, int, bytes]]:
        """Yield the entry of each layer and text, in any order, from the cache or the network."""
        bases = [
            blake2b(
                key_of(self.digest, task.kind, *map(str, (ARITHMETIC, layer, task.max_tokens))),
                digest_size=16,
            )
            for layer in task.layers
        ]
        done = 0
        for start in range(0, len(texts), CHUNK):
            chunk = texts[start : start + CHUNK]
            keys = [[_key(base, text) for base in bases] for text in chunk]
            cached = self.cache.get([key for of_text in keys for key in of_text])
            missing: dict[tuple[int, ...], list[int]] = {}
            for row, of_text in enumerate(keys):
                for number, key in enumerate(of_text):
                    if key in cached:
                        yield number, start + row, self._content(cached[key], chunk[row])
                # cached layers are kept: computed in another batch, their last bits would differ
                if lacking := tuple(n for n, key in enumerate(of_text) if key not in cached):
                    missing.setdefault(lacking, []).append(row)
            done += len(chunk) - sum(map(len, missing.values()))
            if on_progress is not None:
                on_progress(done, len(texts))
            for numbers, rows in missing.items():
                layers = [task.layers[number] for number in numbers]
                for computed in self._compute([chunk[row] for row in rows], task, layers):
                    entries = [
                        (number, rows[i], data)
                        for i, of_layers in computed
                        for number, data in zip(numbers, of_layers, strict=True)
                    ]
                    self.cache.put((keys[row][number], data) for number, row, data in entries)
                    for number, row, data in entries:
                        yield number, start + row, self._content(data, chunk[row])
                    done += len(computed)
                    if on_progress is not None:
                        on_progress(done, len(texts))

    def _compute(
        self, texts: list[str], task: _Task, layers: list[int]
    ) -> Iterator[list[tuple[int, list[bytes]]]]:
        """Yield batch by batch the entries of uncached texts: their rows, and one entry a layer."""
        tokenized = self._tokenize(texts, task.max_tokens)
        flags = [_FLAGS[bool(truncated)] for truncated in tokenized.truncated]
        empty = np.flatnonzero(tokenized.lengths == 0).tolist()
        if empty:
            yield [(row, [flags[row]] * len(layers)) for row in empty]
        for rows in length_batches(tokenized.lengths, self._network.batch_tokens):
            ids, lengths = select_texts(tokenized, rows)
            by_layer = []
            for vectors in self._network.run(ids, lengths, layers):
                if vectors.shape[1] != self.dimensions or not np.isfinite(vectors).all():
                    raise DataError(
                        "the model gives vectors that are not numbers or of another size than"
                        " config.json says; its weights are damaged",
                        path=str(self._folder.path),
                    )
                by_layer.append(task.entries(ids, vectors, lengths))
            yield [
                (row, [flags[row] + data for data in of_layers])
                for row, *of_layers in zip(rows.tolist(), *by_layer, strict=True)
            ]

    def _content(self, entry: bytes, text: str) -> bytes:
        """Return an entry without its flag, which says whether the text was truncated."""
        if entry.startswith(_FLAGS[True]):
            self._truncated.add(key_of(text))
        return entry[len(_FLAGS[True]) :]

    def _tokenize(self, texts: Sequence[str], max_tokens: int) -> TokenizedTexts:
        return self._tokenizer.tokenize(texts, max_tokens)

    @cached_property
    def _tokenizer(self) -> SubwordTokenizer:
        return open_tokenizer(self._folder)

    @cached_property
    def _network(self) -> Network:
        from rejoinder.encode.transformer.bert_network import open_bert
        from rejoinder.encode.transformer.transformers_network import TransformersNetwork

        return open_bert(self._folder) or TransformersNetwork(self._folder)

    def _checked_layer(self, layer: int | None) -> int:
        if layer is None:
            return self.layers
        if not 0 <= layer <= self.layers:
            raise UsageError(f"layer={layer}: model '{self.name}' has layers 0 to {self.layers}")
        return layer


def open_encoder(name: str = DEFAULT_MODEL) -> Encoder:
    """Return the encoder of that name; the same object throughout a process."""
    return _opened(name)


_opened = lru_cache(maxsize=8)(Encoder)


@dataclass(frozen=True)
class _Task:
    """A computation for each text, and the format of its result in the cache."""

    kind: str
    layers: tuple[int, ...]
    max_tokens: int
    entries: Callable[[NDArray[np.int32], Floats, Ints], list[bytes]]


_FLAGS = {False: b"\0\0\0\0", True: b"\1\0\0\0"}
"""Whether a text was truncated: four bytes, so that the numbers behind them are aligned."""


def _key(base: blake2b, text: str) -> bytes:
    key = base.copy()
    key.update(text.encode("utf-8", "surrogatepass"))
    return key.digest()


def _mean_pooling(vectors: Floats, lengths: Ints) -> Floats:
    starts = np.cumsum(lengths) - lengths
    means: Floats = np.add.reduceat(vectors, starts, axis=0)
    means /= lengths[:, None]
    return means


def _first_token_pooling(vectors: Floats, lengths: Ints) -> Floats:
    first: Floats = vectors[np.cumsum(lengths) - lengths]
    return first


def _unit_rows(rows: Floats) -> Floats:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Floats = rows / np.maximum(norms, np.float32(1e-12))
    return unit
