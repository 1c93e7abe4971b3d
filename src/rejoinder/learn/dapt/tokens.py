"""Pairs as the tokens of a model: the two texts joined, and what masking must know of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.transformer.folder import ModelFolder
from rejoinder.errors import DataError
from rejoinder.learn import tokenizer as learn_tokenizer
from rejoinder.learn.dapt.masking import Vocabulary
from rejoinder.learn.pairs import PairTexts

AT_ONCE = 10_000
"""Pairs tokenized together."""


@dataclass(frozen=True)
class Sequences:
    """Pairs as tokens, one pair after the other."""

    ids: NDArray[np.int32]
    types: NDArray[np.uint8]
    """Which text a token belongs to, for models that want to know."""
    starts: NDArray[np.int64]
    """[n + 1]"""
    cut: int
    """How many pairs were as long as may be: most of them were longer."""

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.starts)


def open_tokenizer(folder: ModelFolder) -> Any:
    """The tokenizer of a model that guesses words."""
    tokenizer = learn_tokenizer.open_tokenizer(folder.path, folder.name)
    if tokenizer.mask_token_id is None:
        raise DataError(
            "the tokenizer has no mask token: this is no model that guesses words",
            path=str(folder.path),
        )
    return tokenizer


def tokenize(tokenizer: Any, pairs: PairTexts, longest: int) -> Sequences:
    """Of a pair that is too long, the longer text loses its end first."""
    ids, types, lengths = [], [], []
    for start in range(0, len(pairs), AT_ONCE):
        found = tokenizer(
            *pairs.some(start, start + AT_ONCE),
            truncation="longest_first",
            max_length=longest,
            return_token_type_ids=True,
            return_attention_mask=False,
            verbose=False,
        )
        lengths += [len(row) for row in found["input_ids"]]
        ids.append(np.fromiter((n for row in found["input_ids"] for n in row), np.int32))
        types.append(np.fromiter((n for row in found["token_type_ids"] for n in row), np.uint8))
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
    cut = sum(length >= longest for length in lengths)
    return Sequences(np.concatenate(ids), np.concatenate(types), starts, cut)


def vocabulary(tokenizer: Any, size: int) -> Vocabulary:
    """What the tokenizer says of its tokens; ``size`` is that of the embeddings."""
    special = np.zeros(size, np.bool_)
    special[[number for number in tokenizer.all_special_ids if number < size]] = True
    known = min(size, len(tokenizer))
    special[known:] = True  # rows of the embeddings that no token has
    names = [str(name) for name in tokenizer.convert_ids_to_tokens(range(known))]
    inside = np.zeros(size, np.bool_)
    inside[:known] = _inside(names)
    return Vocabulary(
        mask=int(tokenizer.mask_token_id),
        padding=int(tokenizer.pad_token_id or 0),
        special=special,
        inside=inside & ~special,
    )


def _inside(names: Sequence[str]) -> list[bool]:
    """Which pieces go on with a word: WordPiece marks them, other tokenizers mark the rest.

    >>> _inside(["walk", "##ing"]), _inside(["▁walk", "ing"])
    ([False, True], [False, True])
    """
    if any(name.startswith("##") for name in names):
        return [name.startswith("##") for name in names]
    firsts = ("▁", "Ġ")
    if any(name.startswith(firsts) for name in names):
        return [not name.startswith(firsts) for name in names]
    return [False] * len(names)
