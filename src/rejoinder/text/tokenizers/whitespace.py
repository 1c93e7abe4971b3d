"""``whitespace``: texts are tokenized already; tokens are separated by white space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rejoinder.text.tokenizers.tokenizer import Codes, Ints, SpanTokenizer


@dataclass(frozen=True)
class Whitespace(SpanTokenizer):
    """For texts that are tokenized, as in DailyDialog.

    >>> Whitespace().tokenize(["well , i see ."])
    [['well', ',', 'i', 'see', '.']]
    """

    max_word_length: ClassVar[int | None] = 9

    def spans(self, codes: Codes, starts: Ints) -> tuple[Ints, Ints, Ints]:
        from rejoinder.kernels.tokens import whitespace_spans

        return whitespace_spans(codes, starts)

    def signature(self) -> str:
        return "whitespace"
