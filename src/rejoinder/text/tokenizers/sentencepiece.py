"""``sentencepiece(model="…")``: the subwords of a trained SentencePiece model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

from rejoinder.errors import DataError, missing_extra
from rejoinder.files.checked import read_bytes
from rejoinder.files.paths import expand_user
from rejoinder.text.tokenizers.tokenizer import Tokenizer

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor


@dataclass(frozen=True)
class SentencePiece(Tokenizer):
    """For the languages of the model, whose digest is in the signature.

    >>> SentencePiece(model="nowhere.model")
    Traceback (most recent call last):
    rejoinder.errors.DataError: nowhere.model: cannot be read: no such file or directory
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
        subwords: list[list[str]] = _processor(self.model, self.digest).encode(
            readable, out_type=str
        )
        return subwords

    def signature(self) -> str:
        return f"sentencepiece-{self.digest[:8]}"


@cache
def _processor(model: str, digest: str) -> SentencePieceProcessor:
    """Load a model once per process, outside the dataclass, which can then be pickled."""
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError:
        raise missing_extra(
            "sentencepiece", "sentencepiece", task="tokenizer sentencepiece"
        ) from None
    content = _read(model)
    if hashlib.sha256(content).hexdigest() != digest:
        raise DataError("the sentencepiece model has changed during the run", path=model)
    processor = SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(content)
    except RuntimeError:
        raise DataError("is not a complete sentencepiece model", path=model) from None
    return processor


def _read(model: str) -> bytes:
    return read_bytes(expand_user(model))
