"""``13a``: the tokenization of mteval-v13a of NIST, which most published BLEU scores use.

Every ASCII punctuation mark but ' - . , is a token of its own; . and , are unless they are inside
a number; - is after a digit. White space at the end of a text is removed first, as in sacreBLEU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rejoinder.text.tokenizers.tokenizer import Codes, Ints, SpanTokenizer

_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))


@dataclass(frozen=True)
class Mteval13a(SpanTokenizer):
    """Splits off ASCII punctuation; meant for Western languages.

    >>> Mteval13a().tokenize(["It's 3.5% (of 1,000), isn't it?", "Tom &amp; Jerry..."])
    [["It's", '3.5', '%', '(', 'of', '1,000', ')', ',', "isn't", 'it', '?'], \
['Tom', '&', 'Jerry', '.', '.', '.']]
    """

    max_word_length: ClassVar[int | None] = 3

    def prepare(self, texts: Sequence[str]) -> Sequence[str]:
        return [
            _plain(text) if "&" in text or "\n" in text or "<skipped>" in text else text
            for text in map(str.rstrip, texts)
        ]

    def spans(self, codes: Codes, starts: Ints) -> tuple[Ints, Ints, Ints]:
        from rejoinder.kernels.tokens import mteval13a_spans

        return mteval13a_spans(codes, starts)

    def signature(self) -> str:
        return "13a"


def _plain(text: str) -> str:
    """Remove the mark for untranslated text, join hyphenated lines, and replace entities."""
    text = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return text
