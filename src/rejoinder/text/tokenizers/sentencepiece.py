"""``sentencepiece(model="…")``: the pieces of a trained SentencePiece model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rejoinder.errors import DataError, MissingExtra
from rejoinder.text.tokenizers.tokenizer import Tokenizer

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor


@dataclass(frozen=True)
class SentencePiece(Tokenizer):
    """For any language that a model was trained on; the signature carries the model's digest.

    >>> SentencePiece(model="nowhere.model")
    Traceback (most recent call last):
    ValueError: model 'nowhere.model' cannot be read: No such file or directory
    """

    model: str

    def __post_init__(self) -> None:
        _processor(self.model, self.digest)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the model file, in hexadecimal."""
        return hashlib.sha256(_read(self.model)).hexdigest()

    def tokenize(self, texts: Sequence[str]) -> list[list[str]]:
        readable = [text.encode("utf-8", "replace").decode() for text in texts]
        pieces: list[list[str]] = _processor(self.model, self.digest).encode(readable, out_type=str)
        return pieces

    def signature(self) -> str:
        return f"sentencepiece-{self.digest[:8]}"


@cache
def _processor(model: str, digest: str) -> SentencePieceProcessor:
    """Loaded once a process and outside the dataclass, which stays small and can be pickled."""
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError:
        raise MissingExtra("sentencepiece needs its package: pip install sentencepiece") from None
    content = _read(model)
    if hashlib.sha256(content).hexdigest() != digest:
        raise DataError("the sentencepiece model has changed during the run", path=model)
    processor = SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(content)
    except RuntimeError:
        raise ValueError(f"model '{model}' is not a whole sentencepiece model") from None
    return processor


def _read(model: str) -> bytes:
    try:
        return Path(model).read_bytes()
    except OSError as error:
        raise ValueError(f"model '{model}' cannot be read: {error.strerror}") from None
