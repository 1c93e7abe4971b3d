"""Turn inputs into sentences and words, as patterns are matched with them.

The words of a sentence are in capitals and without punctuation; :meth:`Words.span` returns the
text that a wildcard stands for as it was written.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import regex

from rejoinder.systems.aiml.substitutions import NORMAL

WILDCARDS = frozenset("#_^*")
_WORD = regex.compile(r"[^\s\p{P}\p{S}]+")
_SENTENCE_END = regex.compile(r"[.?!。？！]")


@dataclass(frozen=True)
class Words:
    """A text and its words."""

    text: str
    words: list[str]
    places: list[tuple[int, int]]

    def span(self, start: int, end: int) -> str:
        """Return the text of the words from ``start`` up to, but without, ``end``.

        Punctuation that touches the first or last word belongs to it.
        """
        if start >= end or end > len(self.places):
            return ""
        first, last = self.places[start][0], self.places[end - 1][1]
        before = 0 if start == 0 else self.places[start - 1][1]
        after = self.places[end][0] if end < len(self.places) else len(self.text)
        head, tail = self.text[before:first], self.text[last:after]
        # punctuation between two words without a space, as in "well-known", belongs to neither
        if (
            head
            and not head[-1].isspace()
            and (start == 0 or len(head.split()) > 1 or head[0].isspace())
        ):
            first -= len(head.rsplit(None, 1)[-1])
        if (
            tail
            and not tail[0].isspace()
            and (end == len(self.places) or len(tail.split()) > 1 or tail[-1].isspace())
        ):
            last += len(tail.split(None, 1)[0])
        return " ".join(self.text[first:last].split())


@lru_cache(maxsize=256)
def words_of(text: str) -> Words:
    """Return the words of a text, with contractions written out.

    >>> words_of("What's up, well-known Bob?").words
    ['WHAT', 'IS', 'UP', 'WELL', 'KNOWN', 'BOB']
    """
    text = NORMAL.apply(text.replace("’", "'"))
    places = [match.span() for match in _WORD.finditer(text)]
    return Words(text, [text[a:b].upper() for a, b in places], places)


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text that have words.

    >>> sentences_of("Well... how are you? ")
    ['Well', 'how are you']
    """
    return [part.strip() for part in _SENTENCE_END.split(text) if _WORD.search(part)]


def pattern_words(text: str) -> list[str]:
    """Return the words and wildcards of a pattern; other punctuation can never be matched.

    >>> pattern_words("_ is $Rejoinder a bot. *")
    ['_', 'IS', '$REJOINDER', 'A', 'BOT', '*']
    """
    words: list[str] = []
    for word in text.upper().split():
        if word.isalnum() or word in WILDCARDS:
            words.append(word)
        elif word.startswith("$") and (found := _WORD.findall(word)):
            words += ["$" + found[0], *found[1:]]
        else:
            words += _WORD.findall(word)
    return words
