"""``gru``: pieces of words, read by a Bi-GRU that learns all from the pairs (the papers' form).

The pieces are those of a SentencePiece model that is trained on the pairs, too: so it works in any
language, and needs nothing that was learnt elsewhere.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rejoinder.errors import DataError, MissingExtra, UsageError
from rejoinder.io import open_output
from rejoinder.learn.checkpoint import Model
from rejoinder.learn.forms.base import Contexts, Form
from rejoinder.learn.forms.ragged import Ragged, distinct, joined
from rejoinder.learn.material import Material
from rejoinder.learn.networks.gru import PAD
from rejoinder.learn.networks.raters import GruRater
from rejoinder.learn.networks.scorers import GruScorer
from rejoinder.learn.settings import RaterSettings, ScorerSettings

FILE = "pieces.model"
TURN = 1
"""The piece between two turns; pieces of the model come after it and the padding."""
BEFORE = 2
MOST_TEXTS = 300_000
"""Texts that pieces are learnt from: more would not change them by much."""
LONGEST_TEXT = 2**14
"""Bytes; SentencePiece leaves out longer ones."""


class GruForm(Form):
    """Texts as pieces."""

    name: ClassVar[str] = "gru"

    def __init__(self, model: bytes, embedding: int, hidden: int, longest: int) -> None:
        problems = [
            f"{what} must be above 0, not {value}"
            for what, value in (("embedding", embedding), ("hidden", hidden), ("longest", longest))
            if value < 1
        ]
        if problems:
            raise UsageError(*problems)
        self.model, self.embedding, self.hidden, self.longest = model, embedding, hidden, longest
        self._processor = _open(model)

    @classmethod
    def make(
        cls,
        material: Material,
        work: Path,
        *,
        pieces: int = 8000,
        embedding: int = 128,
        hidden: int = 128,
        longest: int = 128,
    ) -> GruForm:
        """With ``pieces`` pieces (fewer if the texts are too few), of which at most ``longest``
        of a text are read."""
        path = work / f"pieces-{material.digest[:12]}-{pieces}.model"
        if not path.exists():
            model = train_pieces(_texts(material), pieces)
            work.mkdir(parents=True, exist_ok=True)
            with open_output(path) as stream:
                stream.write(model)
        return cls(path.read_bytes(), embedding, hidden, longest)

    def contexts(self, contexts: Contexts, turns: int = 1) -> Ragged:
        shortened = [context[-turns:] for context in contexts]
        numbers = distinct(turn for context in shortened for turn in context)
        pieces = self._pieces(list(numbers))
        rows = [
            joined([pieces[numbers[turn]] for turn in context], TURN, self.longest)
            for context in shortened
        ]
        return Ragged.of(rows, PAD)

    def replies(self, texts: Sequence[str]) -> Ragged:
        numbers = distinct(texts)
        pieces = self._pieces(list(numbers))
        return Ragged.of([pieces[numbers[text]][: self.longest] for text in texts], PAD)

    def scorer(self, settings: ScorerSettings) -> Model:
        return GruScorer(**self._sizes, wide=settings.wide, dropout=settings.dropout)

    def rater(self, settings: RaterSettings) -> Model:
        return GruRater(
            **self._sizes, wide=settings.wide, layers=settings.layers, dropout=settings.dropout
        )

    @property
    def depends(self) -> dict[str, str]:
        return {}

    def plain(self) -> dict[str, Any]:
        return {
            "embedding": self.embedding,
            "hidden": self.hidden,
            "longest": self.longest,
            "pieces": self.digest,
        }

    @cached_property
    def digest(self) -> str:
        """Of the pieces."""
        return hashlib.sha256(self.model).hexdigest()

    def _save_files(self, folder: Path) -> None:
        (folder / FILE).write_bytes(self.model)

    @classmethod
    def _opened(cls, folder: Path, record: Mapping[str, Any]) -> GruForm:
        form = cls(
            (folder / FILE).read_bytes(), record["embedding"], record["hidden"], record["longest"]
        )
        if form.digest != record["pieces"]:
            raise DataError("is not the file that was written here", path=str(folder / FILE))
        return form

    @property
    def _sizes(self) -> dict[str, int]:
        pieces = BEFORE + self._processor.get_piece_size()
        return {"pieces": pieces, "embedding": self.embedding, "hidden": self.hidden}

    def _pieces(self, texts: list[str]) -> list[list[int]]:
        # a lone surrogate is no character
        readable = [text.encode("utf-8", "replace").decode() for text in texts]
        found = self._processor.encode(readable, out_type=int)
        return [[piece + BEFORE for piece in row] for row in found]


def train_pieces(texts: Iterator[str], pieces: int) -> bytes:
    """A SentencePiece model; the same texts give the same bytes."""
    spm = _package()
    model = io.BytesIO()
    try:
        spm.SentencePieceTrainer.train(
            sentence_iterator=texts,
            model_writer=model,
            vocab_size=pieces,
            hard_vocab_limit=False,
            character_coverage=0.9995,
            max_sentence_length=LONGEST_TEXT,
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError as error:
        reason = str(error).splitlines()[-1][-200:]
        raise UsageError(f"{pieces} pieces can't be made of these texts: {reason}") from None
    return model.getvalue()


def _texts(material: Material) -> Iterator[str]:
    """Both sides of training pairs, all of them or some from everywhere."""
    examples = material.training
    step = max(1.0, 2 * len(examples) / MOST_TEXTS)
    for row in np.arange(0, len(examples), step).astype(np.int64).tolist():
        for text in (examples.utterances[row], examples.responses[row]):
            yield text.encode("utf-8", "replace").decode()


def _package() -> Any:
    try:
        import sentencepiece
    except ImportError:
        raise MissingExtra("form gru needs sentencepiece: pip install sentencepiece") from None
    return sentencepiece


def _open(model: bytes) -> Any:
    processor = _package().SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
    except RuntimeError:
        raise DataError("the sentencepiece model is damaged", path=FILE) from None
    return processor
