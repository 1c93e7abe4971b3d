"""``vectors``: frozen sentence vectors, for machines without a GPU.

Texts are encoded once, by a transformer or by averaging word vectors, and networks learn to compare
the vectors. An epoch takes at most a minute, and any language with word vectors works. Retrieval
uses the same vectors, from the same cache.

The topic of a sentence is not all that decides whether a reply fits. Lower layers of a transformer
keep more of the words and the syntax, so that the vector of one of them can be appended
(``extra_layer``).
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

from rejoinder.encode.text_encoders import (
    SentenceEncoder,
    TextEncoder,
    WordVectorEncoder,
    make_text_encoder,
    turn_from_end,
)
from rejoinder.encode.transformer.find_model import DEFAULT_MODEL
from rejoinder.errors import UsageError
from rejoinder.learn.checkpoint import Model
from rejoinder.learn.inputs.char_ngrams import char_ngrams
from rejoinder.learn.inputs.input_encoder import Contexts, InputEncoder, Ints, whole_number
from rejoinder.learn.networks.raters import VectorRater
from rejoinder.learn.networks.scorers import VectorScorer
from rejoinder.learn.settings import RaterSettings, ScorerSettings
from rejoinder.learn.training_data import TrainingData
from rejoinder.spec import Spec, parse
from rejoinder.text.distinct import distinct
from rejoinder.text.questions import is_question

MAX_BUCKETS = 65_536
MAX_LAYER = 1000


@dataclass(frozen=True)
class EncodedVectors:
    """Vectors of the distinct texts, and which of them each row has."""

    vectors: Tensor
    """[distinct, d], and with ``question_feature`` one column more"""
    rows: Ints
    """[n] or [n, views]"""
    ngrams: Any = None
    """[distinct, buckets] sparse, with ``char_ngram_buckets``"""

    @property
    def lengths(self) -> Ints:
        return np.ones(len(self.rows), np.int64)

    def batch(self, rows: Ints) -> Tensor:
        """[n, d + buckets] or [n, views, d + buckets]"""
        texts = self.rows[rows]
        vectors = self.vectors[torch.from_numpy(texts)]
        if self.ngrams is None:
            return vectors
        dense = torch.from_numpy(self.ngrams[texts.reshape(-1)].toarray())
        return torch.cat([vectors, dense.reshape(*texts.shape, -1)], dim=-1)


class VectorInput(InputEncoder):
    """Texts as vectors of length 1 from a text encoder."""

    name: ClassVar[str] = "vectors"

    def __init__(
        self,
        encoder: TextEncoder,
        char_ngram_buckets: int = 0,
        question_feature: bool = False,
        extra_layer: int = 0,
        concat_turns: bool = True,
    ) -> None:
        if extra_layer:
            if not isinstance(encoder, SentenceEncoder):
                raise UsageError("input vectors: extra_layer needs a model, not word vectors")
            if not 0 < extra_layer < encoder.encoder.layers:
                raise UsageError(
                    f"input vectors: extra_layer={extra_layer} must be below the last of the"
                    f" {encoder.encoder.layers} layers of model '{encoder.model}'"
                )
        if char_ngram_buckets and not isinstance(encoder, WordVectorEncoder):
            raise UsageError("input vectors: char_ngram_buckets needs word vectors, not a model")
        if not 0 <= char_ngram_buckets <= MAX_BUCKETS:
            raise UsageError(
                f"input vectors: char_ngram_buckets must be from 0 to {MAX_BUCKETS}, not"
                f" {char_ngram_buckets}"
            )
        self.encoder, self.extra_layer, self.concat_turns = encoder, extra_layer, concat_turns
        self.char_ngram_buckets, self.question_feature = char_ngram_buckets, question_feature

    @classmethod
    def make(
        cls,
        data: TrainingData | None = None,
        work: Path | None = None,
        *,
        model: str | None = None,
        vectors: str | None = None,
        tokenizer: str | Spec = "13a",
        lower: bool = True,
        sif_a: float | None = None,
        char_ngram_buckets: int = 0,
        question_feature: bool = False,
        extra_layer: int = 0,
        concat_turns: bool = True,
        home: Path | None = None,
    ) -> VectorInput:
        """Read sentence vectors of a transformer (``model``), or averages of word vectors.

        ``vectors="evaluator"`` are those in the folder ``vectors`` beside ``home``, the folder to
        which the network will be saved: they are moved together. ``sif_a`` weights words by
        a / (a + frequency), as in the retriever; ``char_ngram_buckets`` adds hashed character
        n-grams (0: none); ``question_feature`` adds whether a text asks something; ``extra_layer``
        appends the vector of that layer of the transformer (0: none). With ``concat_turns``, the
        last turns are encoded as one text; without it, each turn by itself.
        """
        features = (char_ngram_buckets, question_feature, extra_layer, concat_turns)
        if vectors is None:
            return cls(SentenceEncoder(model=model or DEFAULT_MODEL), *features)
        if model is not None:
            raise UsageError("input vectors: give either model or vectors, not both")
        spec = tokenizer if isinstance(tokenizer, Spec) else parse(tokenizer)
        try:
            encoder = WordVectorEncoder(vectors=vectors, tok=spec, lower=lower, sif_a=sif_a)
        except ValueError as error:
            raise UsageError(f"input vectors: {error}") from None
        return cls(encoder if home is None else encoder.at(home), *features)

    @classmethod
    def check(cls, **options: Any) -> None:
        cls.make(**options)  # vectors are opened only when the first text is encoded

    def sentence_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[n, d] return vectors of length 1; zeros for a text that has none."""
        with self.open_progress() as on_progress:
            return self.encoder.encode(list(texts), on_progress)

    @property
    def dimensions(self) -> int:
        """Dimensions that networks read: with ``extra_layer``, twice those of the encoder."""
        return self.encoder.dimensions * (2 if self.extra_layer else 1)

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[n, dimensions] return vectors of length 1: the sentence vector, followed by that of
        ``extra_layer``, equally weighted."""
        if not self.extra_layer:
            return self.sentence_vectors(texts)
        assert isinstance(self.encoder, SentenceEncoder)
        wanted = [self.encoder.layer, self.extra_layer]
        with self.open_progress() as on_progress:
            layers = self.encoder.layered(list(texts), wanted, on_progress)
        vectors = np.hstack(layers)
        vectors /= np.float32(2**0.5)
        return vectors

    def encode_contexts(self, contexts: Contexts, turns: int = 1) -> EncodedVectors:
        """Encode several views of each context: its last turn, its last two turns, and so on; for
        a context with fewer turns, the last views are the same.

        Without ``concat_turns``, the views are the last turn, the one before it, and so on: each
        turn is encoded once, however many pairs have it. Missing turns have a zero vector.
        """
        view = _last_turns if self.concat_turns else turn_from_end
        views = [view(context, count) for context in contexts for count in range(1, turns + 1)]
        texts, rows = distinct(views)
        return self._encode(texts, rows.reshape(-1, turns))

    def encode_replies(self, texts: Sequence[str]) -> EncodedVectors:
        return self._encode(*distinct(texts))

    def make_scorer(self, settings: ScorerSettings) -> Model:
        return VectorScorer(
            self.dimensions,
            settings.context_turns,
            settings.hidden_size,
            settings.dropout,
            self.char_ngram_buckets,
            self.question_feature,
            self.encoder.dimensions if self.extra_layer else None,
        )

    def make_rater(self, settings: RaterSettings) -> Model:
        return VectorRater(
            self.dimensions,
            settings.context_turns,
            settings.hidden_size,
            settings.num_layers,
            settings.dropout,
            self.char_ngram_buckets,
            self.question_feature,
        )

    @property
    def depends(self) -> dict[str, str]:
        return self.encoder.depends

    def to_dict(self) -> dict[str, Any]:
        return {
            "encoder": str(self.encoder),
            "char_ngram_buckets": self.char_ngram_buckets,
            "question_feature": self.question_feature,
            "extra_layer": self.extra_layer,
            "concat_turns": self.concat_turns,
        }

    def expected_config(self, context_turns: int) -> dict[str, Any]:
        return {
            "dimensions": self.dimensions,
            "views": context_turns,
            "char_ngram_buckets": self.char_ngram_buckets,
            "question_feature": self.question_feature,
        }

    def _save_files(self, folder: Path) -> None:
        """Write nothing: vectors are opened by their name."""

    @classmethod
    def _open(cls, folder: Path, record: Mapping[str, Any]) -> VectorInput:
        spec = record["encoder"]
        if not isinstance(spec, str):
            raise ValueError(f"encoder must be a text, not {spec!r}")
        switches = {name: record[name] for name in ("question_feature", "concat_turns")}
        if not all(isinstance(value, bool) for value in switches.values()):
            raise ValueError("question_feature and concat_turns must be true or false")
        return cls(
            make_text_encoder(spec).at(folder),
            char_ngram_buckets=whole_number(record, "char_ngram_buckets", 0, MAX_BUCKETS),
            extra_layer=whole_number(record, "extra_layer", 0, MAX_LAYER),
            **switches,
        )

    def _encode(self, texts: list[str], rows: Ints) -> EncodedVectors:
        encoded = self.vectors(texts) if texts else np.zeros((0, self.dimensions))
        vectors = torch.from_numpy(np.ascontiguousarray(encoded, np.float32))
        if self.question_feature:
            signs = [1.0 if is_question(text) else -1.0 for text in texts]
            vectors = torch.cat([vectors, torch.tensor(signs).unsqueeze(1)], dim=1)
        if not self.char_ngram_buckets:
            return EncodedVectors(vectors, rows)
        assert isinstance(self.encoder, WordVectorEncoder)
        ngrams = char_ngrams(texts, self.encoder, self.char_ngram_buckets)
        return EncodedVectors(vectors, rows, ngrams)


def _last_turns(context: Sequence[str], count: int) -> str:
    return " ".join(context[-count:])
