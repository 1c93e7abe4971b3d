"""``vectors``: frozen sentence vectors, for machines without a GPU.

Texts are read once, by an encoder or by averaging word vectors, and networks learn to compare what
was read. That takes no more than a minute an epoch, and works in every language that has vectors.
Vectors are those of retrieval, from the same cache.

What a sentence is about is not all that an answer hangs on. An encoder's lower layers still know
more of its words and of how it is built, so the vector of one of them may stand behind the
sentence's own (``below``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rejoinder.encode.transformer.find import DEFAULT_MODEL
from rejoinder.errors import UsageError
from rejoinder.learn.checkpoint import Model
from rejoinder.learn.forms.base import Contexts, Form, Ints
from rejoinder.learn.forms.ragged import numbered
from rejoinder.learn.forms.spelling import spelled
from rejoinder.learn.material import Material
from rejoinder.learn.networks.raters import VectorRater
from rejoinder.learn.networks.scorers import VectorScorer
from rejoinder.learn.settings import RaterSettings, ScorerSettings
from rejoinder.retrieve.base import make_retriever
from rejoinder.retrieve.dense import SentenceVectors, StaticVectors, VectorRetriever, turn_from_end
from rejoinder.spec import Spec, parse
from rejoinder.text.asking import asks

MOST_PLACES = 65_536


@dataclass(frozen=True)
class Dense:
    """Prepared texts: the vectors of distinct texts, and which of them each row has."""

    vectors: Tensor
    """[distinct, d], and whether the text asks something, if anybody reads that"""
    rows: Ints
    """[n] or [n, views]"""
    spelled: Any = None
    """[distinct, places] sparse: how they are written, if anybody asks for that"""

    @property
    def lengths(self) -> Ints:
        return np.ones(len(self.rows), np.int64)

    def batch(self, numbers: Ints) -> Tensor:
        """[n, d + places] or [n, views, d + places]"""
        rows = self.rows[numbers]
        vectors = self.vectors[torch.from_numpy(rows)]
        if self.spelled is None:
            return vectors
        written = torch.from_numpy(self.spelled[rows.reshape(-1)].toarray())
        return torch.cat([vectors, written.reshape(*rows.shape, -1)], dim=-1)


class VectorForm(Form):
    """Texts as vectors of length 1; ``source`` makes them."""

    name: ClassVar[str] = "vectors"

    def __init__(
        self,
        source: VectorRetriever,
        spelling: int = 0,
        asks: bool = False,
        below: int = 0,
        joined: bool = True,
    ) -> None:
        if below:
            if not isinstance(source, SentenceVectors):
                raise UsageError("form vectors: below needs a model, not word vectors")
            if not 0 < below < source.encoder.layers:
                raise UsageError(
                    f"form vectors: below={below} is no layer below the last;"
                    f" model '{source.model}' has {source.encoder.layers}"
                )
        if spelling and not isinstance(source, StaticVectors):
            raise UsageError("form vectors: spelling needs word vectors, not a model")
        if not 0 <= spelling <= MOST_PLACES:
            raise UsageError(f"form vectors: spelling={spelling} is not from 0 to {MOST_PLACES}")
        self.source, self.spelling, self.asks, self.joined = source, spelling, asks, joined
        self.below = below

    @classmethod
    def make(
        cls,
        material: Material | None = None,
        work: Path | None = None,
        *,
        model: str | None = None,
        vectors: str | None = None,
        tokenizer: str | Spec = "13a",
        lower: bool = True,
        often: float | None = None,
        spelling: int = 0,
        asks: bool = False,
        below: int = 0,
        joined: bool = True,
        home: Path | None = None,
    ) -> VectorForm:
        """Sentence vectors of an encoder (``model``), or averages of word vectors.

        ``vectors="evaluator"`` are those in the folder ``vectors`` beside ``home``, the folder
        where the network is going to be saved: they can be moved together. ``often`` is as in
        the retriever; ``spelling`` is the number of places for how words are written, 0 for none;
        with ``asks``, networks are told which texts ask something; ``below`` is a lower layer of
        the encoder whose vectors they read, too, 0 for none; turns that are not ``joined`` are
        read one by one.
        """
        reads = (spelling, asks, below, joined)
        if vectors is None:
            return cls(SentenceVectors(model=model or DEFAULT_MODEL), *reads)
        if model is not None:
            raise UsageError("form vectors: give a model or vectors, not both")
        spec = tokenizer if isinstance(tokenizer, Spec) else parse(tokenizer)
        try:
            source = StaticVectors(vectors=vectors, tok=spec, lower=lower, often=often)
        except ValueError as error:
            raise UsageError(f"form vectors: {error}") from None
        return cls(source if home is None else source.at(home), *reads)

    @classmethod
    def check(cls, **options: Any) -> None:
        cls.make(**options)  # vectors are opened when the first text is read

    def sentences(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[n, d] vectors of length 1; zeros for a text that has none."""
        with self.watch() as advance:
            return self.source.encode(list(texts), advance)

    @property
    def dimensions(self) -> int:
        """Of what networks read of a text: with a lower layer, twice those of a sentence vector."""
        return self.source.dimensions * (2 if self.below else 1)

    def read(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[n, dimensions] vectors of length 1: the sentence's, and behind it that of a lower layer,
        both alike in size."""
        if not self.below:
            return self.sentences(texts)
        assert isinstance(self.source, SentenceVectors)
        with self.watch() as advance:
            layers = self.source.layered(list(texts), [self.source.layer, self.below], advance)
        found = np.hstack(layers)
        found /= np.float32(2**0.5)
        return found

    def contexts(self, contexts: Contexts, turns: int = 1) -> Dense:
        """Views of each context: its last turn, its last two, and so on. One that has fewer
        turns is seen as a whole more than once.

        If turns are not joined, the last one, the one before it, and so on: each is read once,
        however many pairs have it, and nothing longer than a turn is. Where there is none,
        there is no vector either.
        """
        view = _last_turns if self.joined else turn_from_end
        views = [view(context, count) for context in contexts for count in range(1, turns + 1)]
        once, rows = numbered(views)
        return self._read(once, rows.reshape(-1, turns))

    def replies(self, texts: Sequence[str]) -> Dense:
        return self._read(*numbered(texts))

    def scorer(self, settings: ScorerSettings) -> Model:
        return VectorScorer(
            self.dimensions,
            settings.turns,
            settings.wide,
            settings.dropout,
            self.spelling,
            self.asks,
            self.source.dimensions if self.below else None,
        )

    def rater(self, settings: RaterSettings) -> Model:
        return VectorRater(
            self.dimensions,
            settings.turns,
            settings.wide,
            settings.layers,
            settings.dropout,
            self.spelling,
            self.asks,
        )

    @property
    def depends(self) -> dict[str, str]:
        return self.source.depends

    def plain(self) -> dict[str, Any]:
        return {
            "by": str(self.source), "spelling": self.spelling, "asks": self.asks,
            "below": self.below, "joined": self.joined,
        }  # fmt: skip

    def _save_files(self, folder: Path) -> None:
        """Vectors are found by their name."""

    @classmethod
    def _opened(cls, folder: Path, record: Mapping[str, Any]) -> VectorForm:
        source = make_retriever(record["by"])
        if not isinstance(source, VectorRetriever):
            raise TypeError(f"{record['by']} has no vectors")
        unless_known = {"spelling": 0, "asks": False, "below": 0, "joined": True}
        return cls(source.at(folder), **{k: record.get(k, v) for k, v in unless_known.items()})

    def _read(self, texts: list[str], rows: Ints) -> Dense:
        found = self.read(texts) if texts else np.zeros((0, self.dimensions))
        vectors = torch.from_numpy(np.ascontiguousarray(found, np.float32))
        if self.asks:
            signs = [1.0 if asks(text) else -1.0 for text in texts]
            vectors = torch.cat([vectors, torch.tensor(signs).unsqueeze(1)], dim=1)
        if not self.spelling:
            return Dense(vectors, rows)
        assert isinstance(self.source, StaticVectors)
        return Dense(vectors, rows, spelled(texts, self.source, self.spelling))


def _last_turns(context: Sequence[str], count: int) -> str:
    return " ".join(context[-count:])
