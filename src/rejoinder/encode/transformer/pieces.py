"""Texts as the token numbers of a model, cut where they are too long, without torch.

Nearly all models come with a ``tokenizer.json``, which the ``tokenizers`` package reads alone.
For the others (such as Japanese BERT, which asks MeCab) transformers makes the tokenizer.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.transformer.folder import ModelFolder
from rejoinder.errors import DataError, MissingExtra


@dataclass(frozen=True)
class Split:
    """The tokens of some texts, one after the other."""

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]
    """[n + 1]"""
    cut: NDArray[np.bool_]
    """Which texts were too long."""

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.starts)


class Pieces(ABC):
    """A tokenizer with what the encoder asks of it."""

    @abstractmethod
    def lists(self, texts: Sequence[str], longest: int) -> tuple[list[list[int]], list[bool]]:
        """The token numbers of each text, special tokens included, and which texts were cut."""

    def split(self, texts: Sequence[str], longest: int) -> Split:
        if not texts:
            return Split(np.empty(0, np.int32), np.zeros(1, np.int64), np.empty(0, np.bool_))
        try:
            found, cut = self.lists(texts, longest)
        except (UnicodeEncodeError, TypeError):
            # a lone surrogate is no character: shown, and read, as the replacement character
            found, cut = self.lists([_whole(text) for text in texts], longest)
        starts = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(ids) for ids in found], out=starts[1:])
        flat = (number for ids in found for number in ids)
        return Split(np.fromiter(flat, np.int32, starts[-1]), starts, np.array(cut, np.bool_))

    def special_ids(self, longest: int) -> frozenset[int]:
        """What is set around every text; an unknown word is not special, it is the text's."""
        return frozenset(self.lists([""], longest)[0][0])


class _FastPieces(Pieces):
    """A ``tokenizers.Tokenizer``."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._tokenizer.no_padding()

    def lists(self, texts: Sequence[str], longest: int) -> tuple[list[list[int]], list[bool]]:
        self._tokenizer.enable_truncation(longest)
        encodings = self._tokenizer.encode_batch_fast(list(texts))
        found = [encoding.ids for encoding in encodings]
        cut = [
            len(ids) >= longest and bool(encoding.overflowing)
            for ids, encoding in zip(found, encodings, strict=True)
        ]
        return found, cut


class _SlowPieces(Pieces):
    """A tokenizer of transformers that is written in Python."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def lists(self, texts: Sequence[str], longest: int) -> tuple[list[list[int]], list[bool]]:
        found = self._ids(texts, max_length=longest, truncation=True)
        full = [i for i, ids in enumerate(found) if len(ids) >= longest]
        cut = [False] * len(found)
        for i, ids in zip(full, self._ids([texts[i] for i in full]), strict=True):
            cut[i] = len(ids) > longest
        return found, cut

    def _ids(self, texts: Sequence[str], **settings: Any) -> list[list[int]]:
        if not texts:
            return []
        found = self._tokenizer(
            list(texts),
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
            **settings,
        )
        return list(found["input_ids"])


def open_pieces(folder: ModelFolder) -> Pieces:
    """The tokenizer of a model."""
    path = folder.path / "tokenizer.json"
    if not path.is_file():
        return _from_transformers(folder)
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtra("an encoder needs tokenizers: pip install tokenizers") from None
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the class of all errors of the library
        raise DataError(f"is no tokenizer ({error})", path=str(path)) from None
    return _FastPieces(_lowering(tokenizer, folder))


def _from_transformers(folder: ModelFolder) -> Pieces:
    quiet_transformers()
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise MissingExtra(
            f"the tokenizer of model '{folder.name}' needs transformers: pip install transformers"
        ) from None
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder.path), local_files_only=True)
    except ImportError as error:
        raise MissingExtra(f"the tokenizer of model '{folder.name}': {first_line(error)}") from None
    except Exception as error:  # it raises whatever its parts raise
        raise DataError(
            f"the tokenizer can't be opened: {first_line(error)}", path=str(folder.path)
        ) from None
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        return _FastPieces(_lowering(backend, folder))
    return _SlowPieces(tokenizer)


def _lowering(tokenizer: Any, folder: ModelFolder) -> Any:
    """Lower case where sentence-transformers was told so beside the tokenizer."""
    if folder.sentence_settings.get("do_lower_case"):
        from tokenizers.normalizers import Lowercase, Sequence

        before = tokenizer.normalizer
        tokenizer.normalizer = Sequence([Lowercase(), *([before] if before else [])])
    return tokenizer


def quiet_transformers() -> None:
    """Before transformers is imported: no network, and no bars and hints on the screen."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")


def first_line(error: BaseException) -> str:
    """The first line of a message: libraries write pages."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _whole(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
