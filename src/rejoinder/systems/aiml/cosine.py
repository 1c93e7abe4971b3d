"""Find the rule whose pattern is most similar to the input, by the cosine of their word counts.

Sugiyama et al. 2019 ("Automatic evaluation of chat-oriented dialogue systems using large-scale
multi-references", § 3.1.2) let a rule-based system reply in this way. With word counts a and b,
cos(a, b) = Σ a_w b_w / (√Σ a_w² √Σ b_w²). Wildcards are no words; rules that hold only after a
certain reply (<that>) or in a certain <topic> are left out; of equally similar rules the earlier
one is better.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from rejoinder.systems.aiml.normalise import WILDCARDS, words_of
from rejoinder.systems.aiml.parsing import Rule

Tokenize = Callable[[Sequence[str]], list[list[str]]]


def plain_words(texts: Sequence[str]) -> list[list[str]]:
    """Return the words of texts as the standard matching sees them, as they are written."""
    found = map(words_of, texts)
    return [[each.text[start:end] for start, end in each.places] for each in found]


class PatternIndex:
    """The words of all patterns, for similarities with inputs."""

    def __init__(self, rules: Sequence[Rule], tokenize: Tokenize = plain_words) -> None:
        self.rules = [rule for rule in rules if rule.in_any_context]
        self._tokenize = tokenize
        patterns = [
            " ".join(word.lstrip("$") for word in rule.pattern if _is_word(word))
            for rule in self.rules
        ]
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        squares = np.zeros(len(self.rules))
        for number, words in enumerate(tokenize(patterns)):
            for word, count in Counter(map(str.upper, words)).items():
                found[word].append((number, count))
                squares[number] += count * count
        self._postings = {word: np.array(own).T for word, own in found.items()}
        self._norms = np.sqrt(np.maximum(squares, 1))

    def words(self, text: str) -> list[str]:
        """Return the words of an input, as they are written."""
        return self._tokenize([text])[0]

    def best(self, words: Sequence[str]) -> Iterator[tuple[Rule, float]]:
        """Yield the rules that share words with the input, most similar first, with the cosine."""
        counts = Counter(map(str.upper, words))
        products: NDArray[np.float64] = np.zeros(len(self.rules))
        for word, count in counts.items():
            if (own := self._postings.get(word)) is not None:
                products[own[0]] += count * own[1]
        rows = np.flatnonzero(products)
        cosines = products[rows] / (
            self._norms[rows] * np.sqrt(sum(c * c for c in counts.values()))
        )
        # equal cosines may differ in the last bit
        for at in np.lexsort((rows, -cosines.round(12))):
            yield self.rules[rows[at]], float(cosines[at])


def _is_word(word: str) -> bool:
    return word not in WILDCARDS and not word.startswith("<")
