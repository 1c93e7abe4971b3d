"""Encoders of whole texts: unit vectors for retrieval, raters and unreferenced scorers.

Two kinds share one interface. ``vectors`` averages static word vectors, weighted by smooth inverse
frequency if ``sif_a`` is set (Arora et al. 2017, "A simple but tough-to-beat baseline for sentence
embeddings"); ``encoder`` pools the token vectors of a transformer. An encoder is a frozen
dataclass that prints as its spec and is built from it again, so that an evaluator can save it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import UsageError
from rejoinder.files.paths import exists, expand_user
from rejoinder.progress import Progress
from rejoinder.registry import TOKENIZERS
from rejoinder.spec import Spec, build, did_you_mean, parse, spec_of
from rejoinder.text.tokenizers.tokenizer import Tokenizer
from rejoinder.text.tokens import Tokens

if TYPE_CHECKING:
    from rejoinder.encode.static import WordVectors
    from rejoinder.encode.transformer import Encoder

Floats = NDArray[np.float32]

OWN_VECTORS = "evaluator"
"""``vectors=evaluator``: the word vectors that were trained together with an evaluator."""
VECTORS_FOLDER = "vectors"
"""Their folder, next to the folder of the part of the evaluator that uses them."""
JOINED = "+"
"""Between the names of vectors that are read together."""


@dataclass(frozen=True, kw_only=True)
class TextEncoder(ABC):
    """Turns texts into unit vectors."""

    name: ClassVar[str]
    home: ClassVar[Path | None] = None
    """The folder of the part of an evaluator that uses this encoder; see :meth:`at`."""

    def __str__(self) -> str:
        return str(spec_of(self, self.name))

    def at(self, folder: Path) -> Self:
        """Return the same encoder for a part of an evaluator in this folder.

        ``vectors=evaluator`` is then resolved relative to the folder, so that an evaluator can be
        moved as a whole.
        """
        copy = replace(self)
        object.__setattr__(copy, "home", folder)
        return copy

    @property
    @abstractmethod
    def dimensions(self) -> int:
        """Length of the vectors."""

    @property
    @abstractmethod
    def depends(self) -> dict[str, str]:
        """Digests of the model or vectors, and the signature of the tokenizer."""

    @property
    @abstractmethod
    def languages(self) -> frozenset[str] | None:
        """ISO 639-1 codes of the languages that it was trained on; None if unknown."""

    @abstractmethod
    def encode(self, texts: list[str], on_progress: Progress | None = None) -> Floats:
        """Return [n, d] vectors of length 1; zeros for a text that has none."""

    def problems(self, texts: list[str]) -> dict[int, str]:
        """Return the reasons why some of the texts can't be encoded, by their index."""
        return {}


@dataclass(frozen=True, kw_only=True)
class WordVectorEncoder(TextEncoder):
    """The average of the static vectors of the words of a text.

    With ``vectors=A+B``, the average by A is followed by that by B, equally weighted: the cosine of
    two texts is the mean of two cosines. Words are weighted by the frequencies of the first vectors
    that have them.
    """

    name: ClassVar[str] = "vectors"

    vectors: str = "minilm"
    tok: Spec = Spec("13a")
    lower: bool = True
    sif_a: float | None = None
    """The ``a`` of smooth inverse frequency, a / (a + p(word)); None weights all words equally."""

    def __post_init__(self) -> None:
        check_sif_a(self.sif_a)
        _ = self.tokenizer

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return TOKENIZERS.make(self.tok)  # type: ignore[no-any-return]

    @cached_property
    def tables(self) -> tuple[WordVectors, ...]:
        """The word vectors, opened when they are first used."""
        return tuple(map(self._open, split_names(self.vectors)))

    def _open(self, name: str) -> WordVectors:
        from rejoinder.encode.static import open_vectors
        from rejoinder.encode.static.vectors_folder import open_vectors_folder

        if name != OWN_VECTORS:
            return open_vectors(name)
        if self.home is None:
            raise UsageError(
                f"{self.name}: vectors={OWN_VECTORS} works only for a part of an evaluator"
            )
        return open_vectors_folder(self.home.parent / VECTORS_FOLDER, OWN_VECTORS)

    @property
    def dimensions(self) -> int:
        return sum(table.dimensions for table in self.tables)

    @property
    def depends(self) -> dict[str, str]:
        named = (f"{table.name}@{table.digest}" for table in self.tables)
        return {"tokenizer": self.tokenizer.signature(), "vectors": JOINED.join(named)}

    @property
    def languages(self) -> frozenset[str] | None:
        known = [table.languages for table in self.tables if table.languages is not None]
        return frozenset.union(*known) if known else None

    def encode(self, texts: list[str], on_progress: Progress | None = None) -> Floats:
        from rejoinder.kernels.averages import directions

        tokens = self.tokens(texts)
        weights = self.weights(tokens.words)[:, None]
        parts = []
        for table in self.tables:
            vectors, has_vector = table.find(tokens.words)
            parts.append(directions(tokens.ids, tokens.starts, vectors * weights, has_vector))
        if len(parts) == 1:
            return parts[0]
        joined = np.hstack(parts)
        lengths = np.linalg.norm(joined, axis=1, keepdims=True)
        np.divide(joined, lengths, where=lengths > 0, out=joined)
        return joined

    def problems(self, texts: list[str]) -> dict[int, str]:
        return {i: str(reason) for i, reason in self.tokens(texts).problems.items()}

    def tokens(self, texts: list[str]) -> Tokens:
        """Tokenize texts, in lower case if ``lower`` is set."""
        return Tokens.of(self.tokenizer, [t.lower() for t in texts] if self.lower else texts)

    def weights(self, words: Sequence[str]) -> Floats:
        """Return [n] the weight of each word in the average."""
        if self.sif_a is None:
            return np.ones(len(words), np.float32)
        table = next((each for each in self.tables if each.counts is not None), self.tables[0])
        return table.sif_weights(words, self.sif_a)


@dataclass(frozen=True, kw_only=True)
class SentenceEncoder(TextEncoder):
    """The pooled token vectors of a transformer."""

    name: ClassVar[str] = "encoder"

    model: str = "minilm"
    layer: int | None = None
    pooling: str = "mean"

    def __post_init__(self) -> None:
        check_pooling(self.pooling)

    @cached_property
    def encoder(self) -> Encoder:
        """The transformer, opened when it is first used."""
        from rejoinder.encode.transformer import open_encoder

        return open_encoder(self.model)

    @property
    def dimensions(self) -> int:
        return self.encoder.dimensions

    @property
    def depends(self) -> dict[str, str]:
        return {"model": f"{self.encoder.name}@{self.encoder.digest}"}

    @property
    def languages(self) -> frozenset[str] | None:
        return self.encoder.languages

    def encode(self, texts: list[str], on_progress: Progress | None = None) -> Floats:
        return self.layered(texts, [self.layer], on_progress)[0]

    def layered(
        self, texts: list[str], layers: Sequence[int | None], on_progress: Progress | None = None
    ) -> list[Floats]:
        """Return the vectors of several layers, each as :meth:`encode` returns them."""
        by_layer = self.encoder.layered(
            texts, layers, pooling=self.pooling, on_progress=on_progress
        )
        blank = [i for i, text in enumerate(texts) if not text.strip()]
        for vectors in by_layer:
            vectors[blank] = 0
        return by_layer


_KINDS: dict[str, type[TextEncoder]] = {
    kind.name: kind for kind in (WordVectorEncoder, SentenceEncoder)
}


def make_text_encoder(spec: str | Spec) -> TextEncoder:
    """Build a text encoder from its spec, such as ``encoder(model=mpnet)``."""
    parsed = parse(spec) if isinstance(spec, str) else spec
    if parsed.name not in _KINDS:
        raise UsageError(
            f"unknown text encoder '{parsed.name}': {did_you_mean(parsed.name, _KINDS)}"
        )
    return build(_KINDS[parsed.name], parsed.name, dict(parsed.params))


def split_names(vectors: str) -> tuple[str, ...]:
    """Split the names of vectors that are read together.

    >>> split_names("evaluator+chive")
    ('evaluator', 'chive')
    """
    if JOINED not in vectors or exists(expand_user(vectors)):  # "+" may be part of a path
        return (vectors,)
    return tuple(vectors.split(JOINED))


def check_sif_a(sif_a: float | None) -> None:
    """Raise ValueError unless ``sif_a`` is None or a relative frequency."""
    if sif_a is not None and not 0 < sif_a <= 1:
        raise ValueError(f"sif_a={sif_a} is not a relative frequency above 0 and up to 1")


def check_pooling(pooling: str) -> None:
    """Raise ValueError unless transformers can be pooled like this."""
    from rejoinder.encode.transformer.encoder import POOLINGS

    if pooling not in POOLINGS:
        raise ValueError(f"pooling={pooling} is not one of {', '.join(POOLINGS)}")


def turn_from_end(context: Sequence[str], count: int) -> str:
    """Return the last turn (1), the one before it (2), and so on; an empty text if there is none.

    >>> [turn_from_end(["hi", "hello"], count) for count in (1, 2, 3)]
    ['hello', 'hi', '']
    """
    return context[-count] if count <= len(context) else ""
