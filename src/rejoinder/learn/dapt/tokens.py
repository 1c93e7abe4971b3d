"""Tokenize pairs: the two texts joined, and the tokenizer's vocabulary for masking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.transformer.model_folder import ModelFolder
from rejoinder.encode.transformer.tokenizer import load_transformers_tokenizer
from rejoinder.errors import DataError
from rejoinder.learn.dapt.masking import Vocabulary
from rejoinder.learn.training_data import Pairs

CHUNK = 10_000
"""Pairs tokenized at once."""


@dataclass(frozen=True)
class TokenizedPairs:
    """Token ids of pairs, one pair after the other."""

    ids: NDArray[np.int32]
    token_types: NDArray[np.uint8]
    """Which of the two texts a token belongs to."""
    starts: NDArray[np.int64]
    """[n + 1]"""
    truncated: int
    """Number of pairs with the maximum length: most of them were longer."""

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.starts)


def open_tokenizer(folder: ModelFolder) -> Any:
    """Return the tokenizer of a masked language model."""
    tokenizer = load_transformers_tokenizer(folder.path, folder.name)
    if tokenizer.mask_token_id is None:
        raise DataError(
            "the tokenizer has no mask token: this is not a masked language model",
            path=str(folder.path),
        )
    return tokenizer


def tokenize(tokenizer: Any, pairs: Pairs, max_tokens: int) -> TokenizedPairs:
    """Tokenize pairs; of a pair that is too long, the longer text is cut first."""
    ids, types, lengths = [], [], []
    for start in range(0, len(pairs), CHUNK):
        encoded = tokenizer(
            *pairs.texts(start, start + CHUNK),
            truncation="longest_first",
            max_length=max_tokens,
            return_token_type_ids=True,
            return_attention_mask=False,
            verbose=False,
        )
        lengths += [len(row) for row in encoded["input_ids"]]
        ids.append(np.fromiter((n for row in encoded["input_ids"] for n in row), np.int32))
        types.append(np.fromiter((n for row in encoded["token_type_ids"] for n in row), np.uint8))
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
    truncated = sum(length >= max_tokens for length in lengths)
    return TokenizedPairs(np.concatenate(ids), np.concatenate(types), starts, truncated)


def read_vocabulary(tokenizer: Any, size: int) -> Vocabulary:
    """Return the properties of the tokens for masking; ``size`` is that of the embeddings."""
    special = np.zeros(size, np.bool_)
    special[[number for number in tokenizer.all_special_ids if number < size]] = True
    num_tokens = min(size, len(tokenizer))
    special[num_tokens:] = True  # rows of the embeddings without a token
    names = [str(name) for name in tokenizer.convert_ids_to_tokens(range(num_tokens))]
    continues = np.zeros(size, np.bool_)
    continues[:num_tokens] = _continues_word(names)
    return Vocabulary(
        mask=int(tokenizer.mask_token_id),
        padding=int(tokenizer.pad_token_id or 0),
        special=special,
        continues_word=continues & ~special,
    )


def _continues_word(names: Sequence[str]) -> list[bool]:
    """Return which subwords continue a word: WordPiece marks these, other tokenizers the rest.

    >>> _continues_word(["walk", "##ing"]), _continues_word(["▁walk", "ing"])
    ([False, True], [False, True])
    """
    if any(name.startswith("##") for name in names):
        return [name.startswith("##") for name in names]
    word_starts = ("▁", "Ġ")
    if any(name.startswith(word_starts) for name in names):
        return [not name.startswith(word_starts) for name in names]
    return [False] * len(names)
