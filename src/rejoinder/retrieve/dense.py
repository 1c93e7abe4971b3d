"""``vectors`` and ``encoder``: similar pairs by the cosine of their vectors.

``vectors`` averages static word vectors (Tsuta et al. 2020); ``encoder`` pools the token vectors
of a transformer (Tsuta et al. 2023). With ``on=both`` the two cosines are multiplied, negative ones
as 0: the product of two dissimilarities is no similarity.

With several ``turns``, the last one matters most, so it can be weighted more:
``last_turn_weight`` is the weight of the cosine of the last turns alone, next to the cosine of all
``turns`` with weight 1; ``question_weight`` is the weight of a term that is 1 if both last turns
are questions or neither is, else -1. The similarity is the weighted mean. All of it is one cosine
of concatenated vectors:

    cos([a; √w·b], [a'; √w·b']) = (cos(a, a') + w·cos(b, b')) / (1 + w)

With ``concat_turns=false``, turns are encoded one by one, and each is compared with the turn in the
same position: the cosine of the last turns has the weight 1 + ``last_turn_weight``, every other 1;
it is 0 where one of the contexts has no such turn. No text longer than a turn is encoded then, and
most turns are also the utterance or response of another pair, so their vectors are cached.

``precision`` is how vectors are stored: ``float32``, ``float16`` (half the size) or ``int8`` (a
quarter); see :mod:`rejoinder.retrieve.precision`.

``index`` chooses the search: ``exact`` scans all rows, ``hnsw`` and ``ivf-pq`` (FAISS) only likely
ones; see :mod:`rejoinder.retrieve.ann`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rejoinder.encode.text_encoders import (
    SentenceEncoder,
    TextEncoder,
    WordVectorEncoder,
    check_pooling,
    check_sif_a,
    turn_from_end,
)
from rejoinder.items import TURN_END
from rejoinder.progress import Progress, part_of, pass_of
from rejoinder.retrieve.ann import ApproximateSearch, make_approximate_search
from rejoinder.retrieve.precision import PRECISIONS
from rejoinder.retrieve.retriever import BOTH, UTTERANCE, Index, Retriever, WordRetriever
from rejoinder.retrieve.vector_file import VectorFile, Vectors, blocks, write_vectors
from rejoinder.spec import Spec, did_you_mean
from rejoinder.text.questions import is_question

if TYPE_CHECKING:
    from rejoinder.retrieve.pool import Pool

View = tuple[float, Callable[[list[str]], str]]

QUESTION_DIMENSIONS = 2
"""Dimensions of the question term: an even number, because ``ivf-pq`` halves the dimensions."""


@dataclass(frozen=True, kw_only=True)
class VectorRetriever(Retriever):
    """A retriever that compares directions of vectors."""

    index: Spec = Spec("exact")
    concat_turns: bool = True
    last_turn_weight: float = 0.0
    question_weight: float = 0.0
    precision: str = "float32"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.precision not in PRECISIONS:
            hint = did_you_mean(self.precision, PRECISIONS)
            raise ValueError(f"unknown precision '{self.precision}': {hint}")
        for name in ("last_turn_weight", "question_weight"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name}={getattr(self, name):g} is not 0 or more, and finite")
        if self.turns == 1:
            for is_set, setting in (
                (self.last_turn_weight, f"last_turn_weight={self.last_turn_weight:g}"),
                (not self.concat_turns, "concat_turns=false"),
            ):
                if is_set:
                    raise ValueError(f"{setting} needs turns=2 or more")
        if self.approximate is not None and self.on == BOTH:
            raise ValueError(
                f"index={self.index.name} searches by one vector; on=both compares two:"
                " use index=exact"
            )

    @cached_property
    def approximate(self) -> ApproximateSearch | None:
        """The approximate index of FAISS, or None for the exact scan."""
        return make_approximate_search(self.index)

    @property
    @abstractmethod
    def text_encoder(self) -> TextEncoder:
        """The encoder that turns texts into vectors."""

    @property
    def depends(self) -> dict[str, str]:
        return self.text_encoder.depends

    @property
    def languages(self) -> frozenset[str] | None:
        return self.text_encoder.languages

    def encode(self, texts: list[str], on_progress: Progress | None = None) -> Vectors:
        """Return [n, d] vectors of length 1; zeros for a text that has none."""
        return self.text_encoder.encode(texts, on_progress)

    def key(self, context: Sequence[str]) -> str:
        if not self._has_views(UTTERANCE):
            return super().key(context)
        return TURN_END.join(context[-self.turns :])  # split into turns again by encode_key

    def width(self, key: str) -> int:
        """Return the dimensions of the vectors of a key."""
        dimensions = self.text_encoder.dimensions
        if not self._has_views(key):
            return dimensions
        return dimensions * len(self._views) + (QUESTION_DIMENSIONS if self.question_weight else 0)

    def encode_key(
        self, key: str, texts: list[str], on_progress: Progress | None = None
    ) -> Vectors:
        """Return [n, width] vectors whose scalar product is the similarity of two texts of a key;
        zeros for a text that has none."""
        if not self._has_views(key):
            return self.encode(texts, on_progress)
        contexts = [text.split(TURN_END) if self.turns > 1 else [text] for text in texts]
        vectors = np.zeros((len(texts), self.width(key)), np.float32)
        end = 0
        for number, (weight, view) in enumerate(self._views):
            on_pass = pass_of(on_progress, number, len(self._views))
            start, end = end, end + self.text_encoder.dimensions
            vectors[:, start:end] = self.encode(list(map(view, contexts)), on_pass)
            vectors[:, start:end] *= np.float32(weight**0.5)
        if self.question_weight:
            size = (self.question_weight / QUESTION_DIMENSIONS) ** 0.5
            signs = [size if is_question(context[-1]) else -size for context in contexts]
            vectors[:, end:] = np.where(vectors.any(axis=1), signs, 0)[:, None]
        total = sum(weight for weight, _ in self._views) + self.question_weight
        vectors /= np.float32(total**0.5)
        return vectors

    def _has_views(self, key: str) -> bool:
        weighted = self.last_turn_weight or self.question_weight or not self.concat_turns
        return key == UTTERANCE and bool(weighted)

    @property
    def _views(self) -> list[View]:
        """The texts of a context that are encoded, each with the weight of its cosine."""
        turns = [partial(turn_from_end, count=count) for count in range(1, self.turns + 1)]
        if not self.concat_turns:
            return [(1 + self.last_turn_weight, turns[0]), *((1.0, turn) for turn in turns[1:])]
        weight = self.last_turn_weight
        return [(1.0, " ".join), *([(weight, turns[0])] if weight else [])]

    def build(
        self, pool: Pool, folder: Path, on_progress: Progress | None = None
    ) -> dict[str, int]:
        from rejoinder.kernels.topk import skip_blank
        from rejoinder.retrieve.pool import BATCH_ROWS

        notes = {}
        total = len(self.keys) * pool.size
        for number, key in enumerate(self.keys):
            path = folder / f"{key}.npy"
            on_key = part_of(on_progress, number * pool.size, total)

            def texts_from(row: int, key: str = key) -> Iterator[list[str]]:
                return pool.keys(key, self, row)

            shape, encode = (pool.size, self.width(key)), partial(self.encode_key, key)
            precision = PRECISIONS[self.precision]
            write_vectors(path, shape, texts_from, BATCH_ROWS, encode, on_key, precision)
            blank = np.zeros(pool.size, np.bool_)
            for first, (block,) in blocks([VectorFile(path)], range(pool.size), BATCH_ROWS):
                skip_blank(block, blank[first : first + len(block)])
            if blank.any():
                notes[f"{key} without a vector"] = int(blank.sum())
            if self.approximate is not None:
                self.approximate.build(path, folder, on_progress)
        return notes

    def open(self, folder: Path, size: int) -> Index:
        if self.approximate is not None:
            return self.approximate.open(self, folder, size)
        from rejoinder.retrieve.scan import DenseIndex

        return DenseIndex(self, folder, size)


@dataclass(frozen=True, kw_only=True)
class WordVectorRetriever(WordRetriever, VectorRetriever):
    """Compares averages of static word vectors."""

    name: ClassVar[str] = "vectors"
    summary: ClassVar[str] = "cosine of averaged word vectors; on=both multiplies"

    vectors: str = "minilm"
    sif_a: float | None = None
    """The ``a`` of smooth inverse frequency, a / (a + p(word)); None weights all words equally."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sif_a(self.sif_a)

    @cached_property
    def text_encoder(self) -> WordVectorEncoder:
        encoder = WordVectorEncoder(
            vectors=self.vectors, tok=self.tok, lower=self.lower, sif_a=self.sif_a
        )
        return encoder if self.home is None else encoder.at(self.home)

    @property
    def depends(self) -> dict[str, str]:
        return self.text_encoder.depends


@dataclass(frozen=True, kw_only=True)
class SentenceRetriever(VectorRetriever):
    """Compares sentence vectors of a transformer."""

    name: ClassVar[str] = "encoder"
    summary: ClassVar[str] = "cosine of sentence vectors; on=both multiplies"

    model: str = "minilm"
    layer: int | None = None
    pooling: str = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_pooling(self.pooling)

    @cached_property
    def text_encoder(self) -> SentenceEncoder:
        return SentenceEncoder(model=self.model, layer=self.layer, pooling=self.pooling)
