"""``char``: every character is a token, for scripts without spaces that have no tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rejoinder.text.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True)
class Char(Tokenizer):
    """Code points without white space, as sacreBLEU splits them.

    >>> Char().tokenize(["いい 天気"])
    [['い', 'い', '天', '気']]
    """

    def tokenize(self, texts: Sequence[str]) -> list[list[str]]:
        return [list("".join(text.split())) for text in texts]

    def signature(self) -> str:
        return "char"
