"""``whitespace``: the text is already tokenized, tokens stand between white space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rejoinder.text.tokenizers.base import Tokenizer


@dataclass(frozen=True)
class Whitespace(Tokenizer):
    """For texts that come tokenized, as DailyDialog does.

    >>> Whitespace().tokenize(["well , i see ."])
    [['well', ',', 'i', 'see', '.']]
    """

    longest_word: ClassVar[int | None] = 9

    def tokenize(self, texts: Sequence[str]) -> list[list[str]]:
        return [text.split() for text in texts]

    def signature(self) -> str:
        return "whitespace"
