"""``vectors`` and ``encoder``: pairs that mean something similar, by the cosine of vectors.

``vectors`` averages static vectors of words (Tsuta et al. 2020); ``encoder`` pools the vectors that
a transformer gives to words in their sentence (Tsuta et al. 2023). With ``on=both`` the cosines
are multiplied, negative ones as 0: two dissimilarities are no similarity.

Of several turns, what was said last matters most. So it may be looked at once more: ``last`` is
what the cosine of the last turns alone counts beside that of all ``turns``, which counts 1, and
``asks`` what it counts that both last turns ask something, or neither does (1, else -1). The
similarity is the mean. All of it is one cosine, of vectors put behind one another:

    cos([a; √w·b], [a'; √w·b']) = (cos(a, a') + w·cos(b, b')) / (1 + w)

Turns that are not ``joined`` are encoded one by one, and each is compared with the turn in its
place: the cosine of the last ones counts 1 + ``last``, every other 1, and 0 where one of the
contexts has no such turn. Nothing longer than a turn is encoded then, and most turns are the
utterance or the reply of another pair, so they were read before.

``index`` says how the nearest are found: ``exact`` looks at all, ``hnsw`` and ``ivf-pq`` (FAISS)
at the likely ones; see :mod:`rejoinder.retrieve.ann`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import UsageError
from rejoinder.items import TURN_END
from rejoinder.progress import Progress, part_of, pass_of
from rejoinder.retrieve.ann import Nearest, make_nearest
from rejoinder.retrieve.base import BOTH, UTTERANCE, Index, Retriever, WordRetriever
from rejoinder.retrieve.vectors import VectorFile, Vectors, blocks, write_vectors
from rejoinder.spec import Spec
from rejoinder.text.asking import asks
from rejoinder.text.tokens import Tokens

if TYPE_CHECKING:
    from rejoinder.encode.static import WordVectors
    from rejoinder.encode.transformer import Encoder
    from rejoinder.retrieve.pool import Pool

Problems = dict[int, str]
View = tuple[float, Callable[[list[str]], str]]

OWN = "evaluator"
"""``vectors=evaluator``: those that were trained with the evaluator which the pool is part of."""
OWN_FOLDER = "vectors"
"""Beside the folder of the pool."""
SIGNS = 2
"""Places for who asks: an even number, as ``ivf-pq`` needs one to divide."""


@dataclass(frozen=True, kw_only=True)
class VectorRetriever(Retriever):
    """Compares directions of vectors."""

    index: Spec = Spec("exact")
    joined: bool = True
    last: float = 0.0
    asks: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("last", "asks"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name}={getattr(self, name):g} is not 0 or more, and finite")
        for given, told in ((self.last, f"last={self.last:g}"), (not self.joined, "joined=false")):
            if given and self.turns == 1:
                raise ValueError(f"{told}: with turns=1 the last turn is all there is")
        if self.nearest is not None and self.on == BOTH:
            raise ValueError(
                f"index={self.index.name} finds what is near to one vector; with on=both there are"
                " two: take index=exact"
            )

    @cached_property
    def nearest(self) -> Nearest | None:
        """The approximate index, if one is wanted."""
        return make_nearest(self.index)

    @property
    @abstractmethod
    def dimensions(self) -> int: ...

    @abstractmethod
    def encode(self, texts: list[str], on_progress: Progress | None = None) -> Vectors:
        """[n, d] vectors of length 1, zeros for a text that has none."""

    def problems(self, texts: list[str]) -> Problems:
        """What is wrong with some of the texts, so that they can't be encoded."""
        return {}

    def key(self, context: Sequence[str]) -> str:
        if not self._looks_again(UTTERANCE):
            return super().key(context)
        return TURN_END.join(context[-self.turns :])  # so that the last one is found again

    def width(self, key: str) -> int:
        """Places of the vectors of a key."""
        if not self._looks_again(key):
            return self.dimensions
        return self.dimensions * len(self._views) + (SIGNS if self.asks else 0)

    def places(self, key: str, texts: list[str], on_progress: Progress | None = None) -> Vectors:
        """[n, width] vectors whose scalar product is the similarity of two texts of a key; zeros
        for a text that has none."""
        if not self._looks_again(key):
            return self.encode(texts, on_progress)
        contexts = [text.split(TURN_END) if self.turns > 1 else [text] for text in texts]
        found = np.zeros((len(texts), self.width(key)), np.float32)
        end = 0
        for number, (weight, view) in enumerate(self._views):
            told = pass_of(on_progress, number, len(self._views))
            start, end = end, end + self.dimensions
            found[:, start:end] = self.encode(list(map(view, contexts)), told)
            found[:, start:end] *= np.float32(weight**0.5)
        if self.asks:
            size = (self.asks / SIGNS) ** 0.5
            signs = [size if asks(context[-1]) else -size for context in contexts]
            found[:, end:] = np.where(found.any(axis=1), signs, 0)[:, None]
        found /= np.float32((sum(weight for weight, _ in self._views) + self.asks) ** 0.5)
        return found

    def _looks_again(self, key: str) -> bool:
        return key == UTTERANCE and bool(self.last or self.asks or not self.joined)

    @property
    def _views(self) -> list[View]:
        """What is encoded of a context, and how much its cosine counts."""
        turn = [partial(turn_from_end, count=count) for count in range(1, self.turns + 1)]
        if not self.joined:
            return [(1 + self.last, turn[0]), *((1.0, before) for before in turn[1:])]
        return [(1.0, " ".join), *([(self.last, turn[0])] if self.last else [])]

    def build(
        self, pool: Pool, folder: Path, on_progress: Progress | None = None
    ) -> dict[str, int]:
        from rejoinder.kernels.topk import skip_blank
        from rejoinder.retrieve.pool import ROWS

        notes = {}
        total = len(self.keys) * pool.size
        for number, key in enumerate(self.keys):
            path = folder / f"{key}.npy"
            told = part_of(on_progress, number * pool.size, total)

            def texts_from(row: int, key: str = key) -> Iterator[list[str]]:
                return pool.keys(key, self, row)

            shape, encode = (pool.size, self.width(key)), partial(self.places, key)
            write_vectors(path, shape, texts_from, ROWS, encode, told)
            blank = np.zeros(pool.size, np.bool_)
            for first, (block,) in blocks([VectorFile(path)], range(pool.size), ROWS):
                skip_blank(block, blank[first : first + len(block)])
            if blank.any():
                notes[f"{key} without a vector"] = int(blank.sum())
            if self.nearest is not None:
                self.nearest.build(path, folder, on_progress)
        return notes

    def open(self, folder: Path, size: int) -> Index:
        if self.nearest is not None:
            return self.nearest.open(self, folder, size)
        from rejoinder.retrieve.scan import DenseIndex

        return DenseIndex(self, folder, size)


@dataclass(frozen=True, kw_only=True)
class StaticVectors(WordRetriever, VectorRetriever):
    """The average of the vectors of the words, whatever stands around them."""

    name: ClassVar[str] = "vectors"
    summary: ClassVar[str] = "cosine of averaged word vectors; on=both multiplies"

    vectors: str = "minilm"
    often: float | None = None
    """Words that stand more often than this share of all count less; None: all count the same."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.often is not None and not 0 < self.often <= 1:
            raise ValueError(f"often={self.often} is no share of the words, from 0 to 1")

    @cached_property
    def table(self) -> WordVectors:
        from rejoinder.encode.static import open_vectors
        from rejoinder.encode.static.folder import open_folder

        if self.vectors != OWN:
            return open_vectors(self.vectors)
        if self.home is None:
            raise UsageError(f"{self.name}: vectors={OWN} are those of an evaluator's own pool")
        return open_folder(self.home.parent / OWN_FOLDER, OWN)

    @property
    def dimensions(self) -> int:
        return self.table.dimensions

    @property
    def depends(self) -> dict[str, str]:
        return super().depends | {"vectors": f"{self.table.name}@{self.table.digest}"}

    def encode(self, texts: list[str], on_progress: Progress | None = None) -> Vectors:
        from rejoinder.kernels.averages import directions

        tokens = self.tokens(texts)
        vectors, known = self.table.find(tokens.words)
        vectors *= self.weights(tokens.words)[:, None]
        return directions(tokens.ids, tokens.starts, vectors, known)

    def problems(self, texts: list[str]) -> Problems:
        return {i: str(reason) for i, reason in self.tokens(texts).problems.items()}

    def tokens(self, texts: list[str]) -> Tokens:
        return Tokens.of(self.tokenizer, self.cased(texts))

    def weights(self, words: Sequence[str]) -> NDArray[np.float32]:
        """[n] how much each word counts."""
        if self.often is None:
            return np.ones(len(words), np.float32)
        return self.table.rarity(words, self.often)


@dataclass(frozen=True, kw_only=True)
class SentenceVectors(VectorRetriever):
    """The vector that a transformer gives to the whole text."""

    name: ClassVar[str] = "encoder"
    summary: ClassVar[str] = "cosine of sentence vectors; on=both multiplies"

    model: str = "minilm"
    layer: int | None = None
    pooling: str = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        from rejoinder.encode.transformer.encoder import POOLINGS

        if self.pooling not in POOLINGS:
            raise ValueError(f"pooling={self.pooling} is not one of {', '.join(POOLINGS)}")

    @cached_property
    def encoder(self) -> Encoder:
        from rejoinder.encode.transformer import open_encoder

        return open_encoder(self.model)

    @property
    def dimensions(self) -> int:
        return self.encoder.dimensions

    @property
    def depends(self) -> dict[str, str]:
        return {"model": f"{self.encoder.name}@{self.encoder.digest}"}

    def encode(self, texts: list[str], on_progress: Progress | None = None) -> Vectors:
        return self.layered(texts, [self.layer], on_progress)[0]

    def layered(
        self, texts: list[str], layers: Sequence[int | None], on_progress: Progress | None = None
    ) -> list[Vectors]:
        """The vectors of several layers, each as ``encode`` has its own."""
        found = self.encoder.layered(texts, layers, pooling=self.pooling, on_progress=on_progress)
        blank = [i for i, text in enumerate(texts) if not text.strip()]
        for vectors in found:
            vectors[blank] = 0
        return found


def turn_from_end(context: Sequence[str], count: int) -> str:
    """The last turn (1), the one before it (2), and so on; nothing where there is none."""
    return context[-count] if count <= len(context) else ""
