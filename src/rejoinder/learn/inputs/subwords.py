"""``gru``: subwords, read by a Bi-GRU that is trained from scratch (the input of the papers).

The SentencePiece model is trained on the pairs, too: so it works in any language and needs no
pretrained model.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rejoinder.errors import DataError, UsageError, missing_extra
from rejoinder.files.checked import inside, read_bytes
from rejoinder.files.output import open_output
from rejoinder.learn.checkpoint import Model
from rejoinder.learn.inputs.input_encoder import Contexts, InputEncoder, whole_number
from rejoinder.learn.inputs.ragged import RaggedIds, join_turns
from rejoinder.learn.networks.gru import PAD
from rejoinder.learn.networks.raters import GruRater
from rejoinder.learn.networks.scorers import GruScorer
from rejoinder.learn.settings import RaterSettings, ScorerSettings
from rejoinder.learn.training_data import Pairs, TrainingData
from rejoinder.text.distinct import number_distinct

FILE = "subwords.model"
TURN_SEPARATOR = 1
"""Id between two turns; the ids of subwords follow it and the padding."""
FIRST_SUBWORD = 2
MAX_TRAINING_TEXTS = 300_000
"""Texts that subwords are trained on: more would hardly change them."""
MAX_TEXT_BYTES = 2**14
"""SentencePiece skips longer texts."""
MAX_SIZE = 10**6


class SubwordInput(InputEncoder):
    """Texts as subword ids."""

    name: ClassVar[str] = "gru"

    def __init__(
        self, model: bytes, embedding_size: int, hidden_size: int, max_tokens: int
    ) -> None:
        sizes = {
            "embedding_size": embedding_size, "hidden_size": hidden_size, "max_tokens": max_tokens,
        }  # fmt: skip
        problems = [
            f"{name} must be above 0, not {value}" for name, value in sizes.items() if value < 1
        ]
        if problems:
            raise UsageError(*problems)
        self.model, self.max_tokens = model, max_tokens
        self.embedding_size, self.hidden_size = embedding_size, hidden_size
        self._processor = load_subwords(model)

    @classmethod
    def make(
        cls,
        data: TrainingData,
        work: Path,
        *,
        vocab_size: int = 8000,
        embedding_size: int = 128,
        hidden_size: int = 128,
        max_tokens: int = 128,
    ) -> SubwordInput:
        """Train ``vocab_size`` subwords (fewer if the texts are few); ``max_tokens`` of a text
        are read."""
        path = work / f"subwords-{data.digest[:12]}-{vocab_size}.model"
        if not path.exists():
            model = train_subwords(sample_texts(data.training), vocab_size)
            work.mkdir(parents=True, exist_ok=True)
            with open_output(path) as stream:
                stream.write(model)
        return cls(path.read_bytes(), embedding_size, hidden_size, max_tokens)

    def encode_contexts(self, contexts: Contexts, turns: int = 1) -> RaggedIds:
        shortened = [context[-turns:] for context in contexts]
        numbers = number_distinct(turn for context in shortened for turn in context)
        ids = self._subwords(list(numbers))
        rows = [
            join_turns([ids[numbers[turn]] for turn in context], TURN_SEPARATOR, self.max_tokens)
            for context in shortened
        ]
        return RaggedIds.of(rows, PAD)

    def encode_replies(self, texts: Sequence[str]) -> RaggedIds:
        numbers = number_distinct(texts)
        ids = self._subwords(list(numbers))
        return RaggedIds.of([ids[numbers[text]][: self.max_tokens] for text in texts], PAD)

    def make_scorer(self, settings: ScorerSettings) -> Model:
        return GruScorer(**self._sizes, mlp_size=settings.hidden_size, dropout=settings.dropout)

    def make_rater(self, settings: RaterSettings) -> Model:
        return GruRater(
            **self._sizes,
            mlp_size=settings.hidden_size,
            num_layers=settings.num_layers,
            dropout=settings.dropout,
        )

    @property
    def depends(self) -> dict[str, str]:
        return {}

    def to_dict(self) -> dict[str, Any]:
        return {
            "embedding_size": self.embedding_size,
            "hidden_size": self.hidden_size,
            "max_tokens": self.max_tokens,
            "subwords": self.digest,
        }

    def expected_config(self, context_turns: int) -> dict[str, Any]:
        return dict(self._sizes)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the SentencePiece model."""
        return hashlib.sha256(self.model).hexdigest()

    def _save_files(self, folder: Path) -> None:
        (folder / FILE).write_bytes(self.model)

    @classmethod
    def _open(cls, folder: Path, record: Mapping[str, Any]) -> SubwordInput:
        path = inside(folder, FILE)
        sizes = {
            name: whole_number(record, name, 1, MAX_SIZE)
            for name in ("embedding_size", "hidden_size", "max_tokens")
        }
        content = read_bytes(path)
        if hashlib.sha256(content).hexdigest() != record["subwords"]:
            raise DataError(
                "is not the file that the network was fitted with: its checksum differs",
                path=str(path),
            )
        try:
            return cls(content, **sizes)
        except DataError as error:
            raise DataError(str(error), path=str(path)) from None

    @property
    def _sizes(self) -> dict[str, int]:
        return {
            "vocab_size": FIRST_SUBWORD + self._processor.get_piece_size(),
            "embedding_size": self.embedding_size,
            "hidden_size": self.hidden_size,
        }

    def _subwords(self, texts: list[str]) -> list[list[int]]:
        # a lone surrogate is not a character
        readable = [text.encode("utf-8", "replace").decode() for text in texts]
        rows = self._processor.encode(readable, out_type=int)
        return [[subword + FIRST_SUBWORD for subword in row] for row in rows]


def train_subwords(texts: Iterator[str], vocab_size: int, normalisation: str = "nmt_nfkc") -> bytes:
    """Return a SentencePiece model; the same texts give the same bytes.

    ``normalisation`` is a rule of SentencePiece: ``identity`` keeps, for example, the punctuation
    of Chinese, which ``nmt_nfkc`` replaces.
    """
    sentencepiece = _package()
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=texts,
            model_writer=model,
            vocab_size=vocab_size,
            hard_vocab_limit=False,
            character_coverage=0.9995,
            normalization_rule_name=normalisation,
            max_sentence_length=MAX_TEXT_BYTES,
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError as error:
        reason = str(error).splitlines()[-1][-200:]
        message = (
            f"vocab_size={vocab_size}: SentencePiece cannot be trained on these texts: {reason}"
        )
        raise UsageError(message) from None
    return model.getvalue()


def sample_texts(pairs: Pairs) -> Iterator[str]:
    """Yield both texts of pairs, or of a sample at equal distances, to train a vocabulary on."""
    step = max(1.0, 2 * len(pairs) / MAX_TRAINING_TEXTS)
    for row in np.arange(0, len(pairs), step).astype(np.int64).tolist():
        for text in (pairs.utterances[row], pairs.responses[row]):
            yield text.encode("utf-8", "replace").decode()


def _package() -> Any:
    try:
        import sentencepiece
    except ImportError:
        raise missing_extra("neural", "sentencepiece", task="the input gru") from None
    return sentencepiece


def load_subwords(model: bytes) -> Any:
    """Return the SentencePiece processor of a model."""
    processor = _package().SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
    except RuntimeError:
        raise DataError("the SentencePiece model is damaged") from None
    return processor
