"""Mask words of a context, so that people reply to something that they understand only in part.

Words are found by the tokenizer of the dialogues' language. What is not a word, white space and
punctuation, stays as it is (Sugiyama, Meguro & Higashinaka 2019, section 2.1: with 60 %,
"What is your favorite subject?" becomes "What is *** *** ***?").
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence

import numpy as np

from rejoinder.text.tokenizers.tokenizer import Tokenizer

MASK = "***"
Span = tuple[int, int]
"""Begin and end of a word in a text."""

# tokenizers read these as entities or line breaks; the replacements have the same length
_PLAIN = str.maketrans({"&": "+", "<": "+", "\n": " ", "\r": " ", "\0": " "})


def word_spans(tokenizer: Tokenizer, text: str) -> list[Span]:
    """Return where the words of a text are, without punctuation at their ends.

    >>> from rejoinder.text.tokenizers.whitespace import Whitespace
    >>> word_spans(Whitespace(), "Oh , 'well' !")
    [(0, 2), (6, 10)]
    """
    plain = text.translate(_PLAIN)
    spans = []
    place = 0
    for token in tokenizer.tokenize([plain])[0]:
        begin = plain.find(token, place)
        if begin < 0:  # the tokenizer has changed the text here
            continue
        place = end = begin + len(token)
        while end < len(text) and _is_mark(text[end]):  # accents of the last letter
            end += 1
        while begin < end and not _is_letter(text[begin]):
            begin += 1
        while begin < end and not (_is_letter(text[end - 1]) or _is_mark(text[end - 1])):
            end -= 1
        if begin < end:
            spans.append((begin, end))
    return spans


def masked_count(share: float, words: int) -> int:
    """Return how many words are masked: the share rounded half up, and at least one word.

    >>> [masked_count(0.3, words) for words in (1, 3, 5, 10)]
    [1, 1, 2, 3]
    """
    if share <= 0 or not words:
        return 0
    # 0.1 * 15 is 1.5000000000000002 and 0.35 * 10 is 3.5: digits beyond the twelfth are noise
    return min(words, max(1, math.floor(round(share * words, 12) + 0.5)))


def mask_words(
    tokenizer: Tokenizer, context: Sequence[str], share: float, rng: np.random.Generator
) -> list[str]:
    """Return a context in which a share of the words of all turns together is ``***``."""
    words = [
        (turn, span) for turn, text in enumerate(context) for span in word_spans(tokenizer, text)
    ]
    chosen = rng.permutation(len(words))[: masked_count(share, len(words))]
    masked = list(context)
    for number in sorted(chosen, reverse=True):  # from the end, so that earlier places stay valid
        turn, (begin, end) = words[number]
        masked[turn] = masked[turn][:begin] + MASK + masked[turn][end:]
    return masked


def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LN"


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M"
