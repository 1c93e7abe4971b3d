"""Texts as vectors of a transformer: each distinct text once, and from the cache if it can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.cache import Cache, key_of, open_cache
from rejoinder.encode.transformer.batching import batches, take
from rejoinder.encode.transformer.find import DEFAULT_MODEL, find_folder, split_precision
from rejoinder.encode.transformer.folder import ModelFolder
from rejoinder.encode.transformer.network import Floats, Network
from rejoinder.encode.transformer.pieces import Pieces, Split, open_pieces
from rejoinder.errors import UsageError
from rejoinder.progress import Progress

Ints = NDArray[np.int64]

POOLINGS = ("mean", "cls")
ARITHMETIC = 1
"""Part of every key of the cache: another number where the vectors would be others."""
AT_ONCE = 4096
"""Distinct texts that are looked up and sorted together."""


@dataclass(frozen=True)
class TokenVectors:
    """The tokens of some texts with their vectors, one text after the other."""

    ids: NDArray[np.int32]
    """[total] token numbers, special tokens included."""
    vectors: Floats
    """[total, d], not normalised."""
    starts: Ints
    """[n + 1]"""


class Encoder:
    """A network with its tokenizer; both are opened when they are needed.

    A text that is too long is cut, for token vectors at ``longest``, for the vector of the whole
    text at ``longest_sentence`` tokens, which is what bert-score and sentence-transformers do;
    ``truncated`` counts such texts.
    """

    def __init__(self, name: str = DEFAULT_MODEL) -> None:
        self.name = name
        bare, precision = split_precision(name)
        self._folder = ModelFolder(name, find_folder(bare), precision)
        self.digest = self._folder.digest(self.cache)
        self.dimensions = self._folder.dimensions
        self.layers = self._folder.layers
        self.longest = self._folder.longest
        self.longest_sentence = self._folder.longest_sentence
        self._cut: set[bytes] = set()

    @property
    def cache(self) -> Cache:
        return open_cache()

    @property
    def truncated(self) -> int:
        """How many distinct texts were cut so far in this process, also when from the cache."""
        return len(self._cut)

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """The tokens that are set around every text, such as [CLS] and [SEP]."""
        return self._pieces.special_ids(self.longest)

    def notes(self) -> list[str]:
        """What a user should know of the vectors, in sentences; mostly nothing."""
        lines = self.cache.notes()
        if self.truncated:
            texts = "text was" if self.truncated == 1 else "texts were"
            lines.insert(0, f"model {self.name}: {self.truncated:,} {texts} too long and cut")
        return lines

    def sentences(
        self,
        texts: Sequence[str],
        *,
        layer: int | None = None,
        pooling: str = "mean",
        on_progress: Progress | None = None,
    ) -> Floats:
        """[n, d] a vector of length 1 for each text.

        The mean over all tokens (special ones too) or the first token's vector. A text without
        any token, which few tokenizers allow, has the zero vector.
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
        """The same of several layers: in networks of most families, a text goes through once for
        all of them."""
        if pooling not in POOLINGS:
            raise UsageError(f"pooling '{pooling}' is none of {', '.join(POOLINGS)}")
        distinct, rows = _distinct(texts)
        found = [np.empty((len(distinct), self.dimensions), np.float32) for _ in layers]
        pool = _means if pooling == "mean" else _firsts

        def entries(ids: NDArray[np.int32], vectors: Floats, lengths: Ints) -> list[bytes]:
            return [row.tobytes() for row in _normalised(pool(vectors, lengths))]

        checked = tuple(map(self._checked, layers))
        task = _Task(pooling, checked, self.longest_sentence, entries)
        for number, row, data in self._run(distinct, task, on_progress):
            found[number][row] = np.frombuffer(data, np.float32) if data else 0
        return found if rows is None else [vectors[rows] for vectors in found]

    def tokens(
        self,
        texts: Sequence[str],
        *,
        layer: int | None = None,
        on_progress: Progress | None = None,
    ) -> TokenVectors:
        """The vector of every token of each text."""
        distinct, rows = _distinct(texts)

        def entries(ids: NDArray[np.int32], vectors: Floats, lengths: Ints) -> list[bytes]:
            ends = np.cumsum(lengths)
            spans = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
            return [ids[a:b].tobytes() + vectors[a:b].tobytes() for a, b in spans]

        task = _Task("tokens", (self._checked(layer),), self.longest, entries)
        found: list[bytes] = [b""] * len(distinct)
        for _, row, data in self._run(distinct, task, on_progress):
            found[row] = data
        return self._joined([found[row] for row in rows] if rows is not None else found)

    def token_ids(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], Ints]:
        """The tokens alone, as ``tokens`` has them: [total] numbers and [n + 1] starts."""
        split = self._split(texts, self.longest)
        return split.ids, split.starts

    def _joined(self, entries: list[bytes]) -> TokenVectors:
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
        """The entry of each layer and text, in any order, from the cache or from the network."""
        bases = [
            blake2b(
                key_of(self.digest, task.kind, *map(str, (ARITHMETIC, layer, task.longest))),
                digest_size=16,
            )
            for layer in task.layers
        ]
        done = 0
        for start in range(0, len(texts), AT_ONCE):
            some = texts[start : start + AT_ONCE]
            keys = [[_key(base, text) for base in bases] for text in some]
            known = self.cache.get([key for of_text in keys for key in of_text])
            missing: dict[tuple[int, ...], list[int]] = {}
            for row, of_text in enumerate(keys):
                for number, key in enumerate(of_text):
                    if key in known:
                        yield number, start + row, self._opened(known[key], some[row])
                # what is known stays as it is: made in other company, its last bits would differ
                if gone := tuple(n for n, key in enumerate(of_text) if key not in known):
                    missing.setdefault(gone, []).append(row)
            done += len(some) - sum(map(len, missing.values()))
            if on_progress is not None:
                on_progress(done, len(texts))
            for numbers, rows in missing.items():
                layers = [task.layers[number] for number in numbers]
                for fresh in self._computed([some[row] for row in rows], task, layers):
                    entries = [
                        (number, rows[i], data)
                        for i, of_layers in fresh
                        for number, data in zip(numbers, of_layers, strict=True)
                    ]
                    self.cache.put((keys[row][number], data) for number, row, data in entries)
                    for number, row, data in entries:
                        yield number, start + row, self._opened(data, some[row])
                    done += len(fresh)
                    if on_progress is not None:
                        on_progress(done, len(texts))

    def _computed(
        self, texts: list[str], task: _Task, layers: list[int]
    ) -> Iterator[list[tuple[int, list[bytes]]]]:
        """Batch by batch, the entries of texts that the cache does not have, one of each layer."""
        split = self._split(texts, task.longest)
        flags = [_FLAGS[bool(cut)] for cut in split.cut]
        empty = np.flatnonzero(split.lengths == 0).tolist()
        if empty:
            yield [(row, [flags[row]] * len(layers)) for row in empty]
        for rows in batches(split.lengths, self._network.budget):
            ids, lengths = take(split, rows)
            made = [
                task.entries(ids, vectors, lengths)
                for vectors in self._network.run(ids, lengths, layers)
            ]
            yield [
                (row, [flags[row] + data for data in of_layers])
                for row, *of_layers in zip(rows.tolist(), *made, strict=True)
            ]

    def _opened(self, entry: bytes, text: str) -> bytes:
        """An entry without its flag, which says whether the text was cut."""
        if entry.startswith(_FLAGS[True]):
            self._cut.add(key_of(text))
        return entry[len(_FLAGS[True]) :]

    def _split(self, texts: Sequence[str], longest: int) -> Split:
        return self._pieces.split(texts, longest)

    @cached_property
    def _pieces(self) -> Pieces:
        return open_pieces(self._folder)

    @cached_property
    def _network(self) -> Network:
        from rejoinder.encode.transformer.bert import open_bert
        from rejoinder.encode.transformer.network import AnyNetwork

        return open_bert(self._folder) or AnyNetwork(self._folder)

    def _checked(self, layer: int | None) -> int:
        if layer is None:
            return self.layers
        if not 0 <= layer <= self.layers:
            raise UsageError(f"layer={layer}: model '{self.name}' has layers 0 to {self.layers}")
        return layer


def open_encoder(name: str = DEFAULT_MODEL) -> Encoder:
    """The encoder of that name; the same object throughout a process."""
    return _opened(name)


_opened = lru_cache(maxsize=8)(Encoder)


@dataclass(frozen=True)
class _Task:
    """What is wanted of each text, and how it is kept."""

    kind: str
    layers: tuple[int, ...]
    longest: int
    entries: Callable[[NDArray[np.int32], Floats, Ints], list[bytes]]


_FLAGS = {False: b"\0\0\0\0", True: b"\1\0\0\0"}
"""Four bytes, so that what follows can be read as numbers in place."""


def _key(base: blake2b, text: str) -> bytes:
    whole = base.copy()
    whole.update(text.encode("utf-8", "surrogatepass"))
    return whole.digest()


def _distinct(texts: Sequence[str]) -> tuple[list[str], Ints | None]:
    """Distinct texts, and the row of each text in them; None where they are distinct already."""
    numbers: dict[str, int] = {}
    rows = [numbers.setdefault(text, len(numbers)) for text in texts]
    distinct = list(numbers)
    return distinct, None if len(distinct) == len(rows) else np.array(rows, np.int64)


def _means(vectors: Floats, lengths: Ints) -> Floats:
    starts = np.cumsum(lengths) - lengths
    sums: Floats = np.add.reduceat(vectors, starts, axis=0)
    sums /= lengths[:, None]
    return sums


def _firsts(vectors: Floats, lengths: Ints) -> Floats:
    found: Floats = vectors[np.cumsum(lengths) - lengths]
    return found


def _normalised(rows: Floats) -> Floats:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    found: Floats = rows / np.maximum(norms, np.float32(1e-12))
    return found
