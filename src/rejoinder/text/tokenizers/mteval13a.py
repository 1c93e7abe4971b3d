"""``13a``: the tokenizer of NIST's mteval-v13a script, which most published BLEU scores use."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rejoinder.text.tokenizers.base import Tokenizer

_RULES = (
    # every ASCII mark but ' - . , stands alone
    (re.compile(r"([!-&(-+/:-@\[-`{-~])"), r" \1 "),
    # . and , stand alone, unless they are inside a number
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    # - stands alone after a digit
    (re.compile(r"([0-9])-"), r"\1 - "),
)
_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))


@dataclass(frozen=True)
class Mteval13a(Tokenizer):
    """Splits off ASCII punctuation; meant for Western languages.

    >>> Mteval13a().tokenize(["It's 3.5% (of 1,000), isn't it?", "Tom &amp; Jerry..."])
    [["It's", '3.5', '%', '(', 'of', '1,000', ')', ',', "isn't", 'it', '?'], \
['Tom', '&', 'Jerry', '.', '.', '.']]

    The rules run once over all texts together. Spaces around each text keep a rule from
    seeing two texts at once, so the tokens are those of the texts one by one.
    """

    longest_word: ClassVar[int | None] = 3

    def tokenize(self, texts: Sequence[str]) -> list[list[str]]:
        joined = "".join([f" {_one_line(text)} \n" for text in texts])
        for entity, character in _ENTITIES:
            joined = joined.replace(entity, character)
        for pattern, replacement in _RULES:
            joined = pattern.sub(replacement, joined)
        return [line.split() for line in joined.split("\n")[:-1]]

    def signature(self) -> str:
        return "13a"


def _one_line(text: str) -> str:
    """Without mteval's mark for untranslated text, and with words joined that a line break cut."""
    return text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
