"""``intl``: the international tokenization of mteval-v14, by Unicode character classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from rejoinder.text.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True)
class Intl(Tokenizer):
    """Splits off the punctuation and symbols of every script; for languages that use spaces.

    >>> Intl().tokenize(["«C'est 3,50 €», dit-il."])
    [['«', 'C', "'", 'est', '3,50', '€', '»', ',', 'dit', '-', 'il', '.']]

    As in mteval, punctuation between a digit and the end of the text stays with the digit; white
    space at the end is removed first, as in sacreBLEU. For speed, the rules are applied to all
    texts at once, separated by line breaks, which no rule matches.
    """

    max_word_length: ClassVar[int | None] = 3

    def tokenize(self, texts: Sequence[str]) -> list[list[str]]:
        joined = "".join([text.rstrip().replace("\n", " ") + "\n" for text in texts])
        for substitute, replacement in _rules():
            joined = substitute(replacement, joined)
        return [line.split() for line in joined.split("\n")[:-1]]

    def signature(self) -> str:
        return "intl"


@cache
def _rules() -> tuple[tuple[Callable[[str, str], str], str], ...]:
    import regex

    return (
        # punctuation is a token of its own, unless it is inside a number
        (regex.compile(r"([^\p{N}\n])(\p{P})").sub, r"\1 \2 "),
        (regex.compile(r"(\p{P})([^\p{N}\n])").sub, r" \1 \2"),
        # symbols are always tokens of their own
        (regex.compile(r"(\p{S})").sub, r" \1 "),
    )
