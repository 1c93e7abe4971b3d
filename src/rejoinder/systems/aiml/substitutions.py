"""Replace words: contractions in the input, and the pronouns of <person>, <person2> and <gender>.

The words are those of python-aiml, and so is the treatment of case: a word in lower case, with a
capital or in capitals is replaced in the same form. "I" counts as a word in capitals.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping

_WORD = re.compile(r"\b[^\W\d_]+(?:'[^\W\d_]+)?\b")


class Substitution:
    """Replaces whole words of a text by others.

    >>> Substitution({"my": "your"}).apply("My dog and my cat")
    'Your dog and your cat'
    """

    def __init__(self, words: Mapping[str, str]) -> None:
        self._words: dict[str, str] = {}
        for word, other in words.items():
            self._words[word.lower()] = other.lower()
            self._words[string.capwords(word)] = string.capwords(other)
            self._words[word.upper()] = other.upper()

    def apply(self, text: str) -> str:
        """Return the text with all words replaced at the same time."""
        return _WORD.sub(self._replace, text)

    def _replace(self, match: re.Match[str]) -> str:
        word = match[0]
        found = self._words.get(word)
        if found is None and "'" in word:
            return "'".join(self._words.get(part, part) for part in word.split("'"))
        return word if found is None else found


def _contractions() -> dict[str, str]:
    """Return contractions of English and what they stand for."""
    ends = {"'m": "am", "'re": "are", "'s": "is", "'d": "would", "'ll": "will", "'ve": "have"}
    subjects = {
        "I": ("'m", "'d", "'ll", "'ve"),
        "he": ("'s", "'d", "'ll"),
        "she": ("'s", "'d", "'ll"),
        "it": ("'s", "'d", "'ll"),
        "you": ("'re", "'d", "'ll", "'ve"),
        "we": ("'re", "'d", "'ll", "'ve"),
        "they": ("'re", "'d", "'ll", "'ve"),
    }
    words = {
        subject + end: f"{subject} {ends[end]}" for subject, own in subjects.items() for end in own
    }
    for verb in ("could", "would", "should", "is", "do", "are", "were", "was", "did"):
        words[f"{verb}n't"] = f"{verb} not"
    for verb in ("has", "had", "have"):
        words[f"{verb}n't"] = f"{verb} not"
    for asked in ("where", "who", "what", "when", "why"):
        words[f"{asked}'s"] = f"{asked} is"
        words[f"{asked}'d"] = f"{asked} did"
        words[f"{asked}'ll"] = f"{asked} will"
    return words | {
        "can't": "can not",
        "cannot": "can not",
        "won't": "will not",
        "ain't": "is not",
        "y'all": "you all",
        "wanna": "want to",
        "gonna": "going to",
    }


def _both_ways(first: str, second: str) -> dict[str, str]:
    """Return the words of two lists, each replaced by the one at its place in the other list."""
    pairs = list(zip(first.split(), second.split(), strict=True))
    return dict(pairs) | {b: a for a, b in pairs}


NORMAL = Substitution(_contractions())
"""Contractions, which are written out before an input is matched."""

PERSON = Substitution(
    _both_ways("I me my myself", "he him his himself")
    | {"mine": "his", "she": "I", "her": "me", "hers": "mine", "herself": "myself"}
)
"""First and third person: <person>."""

PERSON2 = Substitution(
    _both_ways("my mine myself", "your yours yourself") | {"I": "you", "me": "you", "you": "me"}
)
"""First and second person: <person2>."""

GENDER = Substitution(
    _both_ways("he him himself", "she her herself") | {"his": "her", "hers": "his"}
)
"""Masculine and feminine: <gender>."""
