"""The subword tokenizer of a model: texts as token ids, truncated to a maximum, without torch.

Nearly all models have a ``tokenizer.json``, which the package ``tokenizers`` reads alone. For the
others (such as Japanese BERT, which needs MeCab) transformers makes the tokenizer.
"""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.transformer.model_folder import ModelFolder
from rejoinder.errors import DataError, MissingExtra, missing_extra
from rejoinder.files.checked import MAX_JSON_BYTES, read_bytes
from rejoinder.files.paths import is_file


@dataclass(frozen=True)
class TokenizedTexts:
    """The token ids of several texts, concatenated."""

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]
    """[n + 1] where each text begins"""
    truncated: NDArray[np.bool_]
    """[n] whether the text was too long"""

    @property
    def lengths(self) -> NDArray[np.int64]:
        """[n] number of tokens of each text."""
        return np.diff(self.starts)


class SubwordTokenizer(ABC):
    """Turns texts into token ids."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @abstractmethod
    def token_lists(
        self, texts: Sequence[str], max_tokens: int
    ) -> tuple[list[list[int]], list[bool]]:
        """Return the ids of each text, special tokens included, and whether it was truncated."""

    def tokenize(self, texts: Sequence[str], max_tokens: int) -> TokenizedTexts:
        """Tokenize texts and truncate them to ``max_tokens``, special tokens included."""
        if not texts:
            return TokenizedTexts(
                np.empty(0, np.int32), np.zeros(1, np.int64), np.empty(0, np.bool_)
            )
        with explain_failure(self._path, "the tokenizer does not work"):
            try:
                lists, truncated = self.token_lists(texts, max_tokens)
            except (UnicodeEncodeError, TypeError):
                # a lone surrogate is not a character: it is read as the replacement character
                lists, truncated = self.token_lists(list(map(_valid, texts)), max_tokens)
        starts = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(ids) for ids in lists], out=starts[1:])
        flat = (number for ids in lists for number in ids)
        ids = np.fromiter(flat, np.int32, starts[-1])
        return TokenizedTexts(ids, starts, np.array(truncated, np.bool_))

    def special_ids(self, max_tokens: int) -> frozenset[int]:
        """Return the ids that surround every text; the unknown token is not among them."""
        with explain_failure(self._path, "the tokenizer does not work"):
            return frozenset(self.token_lists([""], max_tokens)[0][0])


class _FastTokenizer(SubwordTokenizer):
    """A ``tokenizers.Tokenizer``."""

    def __init__(self, tokenizer: Any, path: Path) -> None:
        super().__init__(path)
        self._tokenizer = tokenizer
        self._tokenizer.no_padding()

    def token_lists(
        self, texts: Sequence[str], max_tokens: int
    ) -> tuple[list[list[int]], list[bool]]:
        self._tokenizer.enable_truncation(max_tokens)
        encodings = self._tokenizer.encode_batch_fast(list(texts))
        lists = [encoding.ids for encoding in encodings]
        truncated = [
            len(ids) >= max_tokens and bool(encoding.overflowing)
            for ids, encoding in zip(lists, encodings, strict=True)
        ]
        return lists, truncated


class _SlowTokenizer(SubwordTokenizer):
    """A tokenizer of transformers that is written in Python."""

    def __init__(self, tokenizer: Any, path: Path) -> None:
        super().__init__(path)
        self._tokenizer = tokenizer

    def token_lists(
        self, texts: Sequence[str], max_tokens: int
    ) -> tuple[list[list[int]], list[bool]]:
        lists = self._ids(texts, max_length=max_tokens, truncation=True)
        full = [i for i, ids in enumerate(lists) if len(ids) >= max_tokens]
        truncated = [False] * len(lists)
        for i, ids in zip(full, self._ids([texts[i] for i in full]), strict=True):
            truncated[i] = len(ids) > max_tokens
        return lists, truncated

    def _ids(self, texts: Sequence[str], **settings: Any) -> list[list[int]]:
        if not texts:
            return []
        encodings = self._tokenizer(
            list(texts),
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
            **settings,
        )
        return list(encodings["input_ids"])


def open_tokenizer(folder: ModelFolder) -> SubwordTokenizer:
    """Open the tokenizer of a model."""
    path = folder.path / "tokenizer.json"
    if not is_file(path):
        return _open_with_transformers(folder)
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise missing_extra("neural", "tokenizers", task=f"model '{folder.name}'") from None
    with explain_failure(path, "is no tokenizer"):
        tokenizer = Tokenizer.from_buffer(read_bytes(path, MAX_JSON_BYTES))
    return _FastTokenizer(_with_lower_case(tokenizer, folder), path)


def _open_with_transformers(folder: ModelFolder) -> SubwordTokenizer:
    tokenizer = load_transformers_tokenizer(folder.path, folder.name)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        return _FastTokenizer(_with_lower_case(backend, folder), folder.path)
    return _SlowTokenizer(tokenizer, folder.path)


def load_transformers_tokenizer(path: Path, name: str) -> Any:
    """Return the tokenizer of a folder as transformers makes it, without running its code.

    ``name`` is the model name that the user gave.
    """
    quiet_transformers()
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise missing_extra("neural", "transformers", task=f"model '{name}'") from None
    with explain_failure(path, "the tokenizer can't be opened", name):
        return AutoTokenizer.from_pretrained(
            str(path), local_files_only=True, trust_remote_code=False
        )


@contextlib.contextmanager
def explain_failure(path: Path, message: str, name: str | None = None) -> Iterator[None]:
    """Turn any error of a library that reads a model into a DataError with its path.

    A missing package is a MissingExtra; ``name`` is the model that needs it.
    """
    try:
        yield
    except (DataError, MissingExtra, MemoryError, UnicodeEncodeError):
        raise
    except ImportError as error:
        raise MissingExtra(f"model '{name or path}': {first_line(error)}") from None
    except Exception as error:  # libraries raise whatever their parts raise
        raise DataError(f"{message}: {_reason(error)}", path=str(path)) from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # a crash in Rust code
            raise
        raise DataError(f"{message}: {first_line(error)}", path=str(path)) from None


def _reason(error: Exception) -> str:
    if "trust_remote_code" in str(error):
        return "it needs code that is in the folder, and code from model folders is never run"
    return first_line(error)


def _with_lower_case(tokenizer: Any, folder: ModelFolder) -> Any:
    """Add lower casing if the settings of sentence-transformers ask for it."""
    if folder.sentence_settings.get("do_lower_case"):
        from tokenizers.normalizers import Lowercase, Sequence

        before = tokenizer.normalizer
        tokenizer.normalizer = Sequence([Lowercase(), *([before] if before else [])])
    return tokenizer


def quiet_transformers() -> None:
    """Switch off network access, progress bars and hints before transformers is imported."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")


def first_line(error: BaseException) -> str:
    """Return the first line of a message: libraries write pages."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _valid(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
