"""``chrf``: F score of character n-grams (Popović 2015); with ``words=2`` chrF++ (Popović 2017).

    chrF = (1 + β²) · P · R / (β² · P + R)

P and R are the average precision and recall over the character n-grams of orders 1 … ``n`` and
the word n-grams of orders 1 … ``words``; β = 2 weighs recall twice as much as precision.

Choices, all as in sacrebleu with its defaults, so that the values agree (there times 100):

- White space is not a character. Words are separated by white space, and one ASCII punctuation
  mark at their end, or else at their beginning, becomes a word of its own.
- An order counts only if both texts have n-grams of it, so that short texts lose nothing.
- The corpus value is that of the summed counts; of several references the best one counts
  (``refs=max``). Texts without common n-grams score 0.

>>> import rejoinder
>>> round(rejoinder.score_one("chrf(n=2)", "cat", ["cats"]), 4)
0.7522
"""

# the example: c a t of 3 and of 4, ca at of 2 and of 3: P = 1, R = (3/4 + 2/3) / 2 = 0.70833,
# chrF = 5 · 0.70833 / (4 + 0.70833) = 0.75221

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.metric import ItemMetric, check_range
from rejoinder.text.tokenizers.tokenizer import Tokenizer
from rejoinder.text.tokens import Tokens

PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


@dataclass(frozen=True, kw_only=True)
class Chrf(ItemMetric):
    name: ClassVar[str] = "chrf"
    summary: ClassVar[str] = "F score of character n-grams (words=2: chrF++)"
    best: ClassVar[float | None] = 1.0

    n: int = 6
    words: int = 0
    beta: float = 2.0
    lower: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("n", self.n, 1, 16)
        check_range("words", self.words, 0, 16)
        check_range("beta", self.beta, 0, above=True)

    def stats(self, batch: Batch) -> Floats:
        """Matches, n-grams of the reply, n-grams of the reference, by order each."""
        counts = _counts(batch.table.characters(self.lower), batch, self.n)
        if self.words:
            words = batch.table.tokens(ChrfWords(), self.lower)
            counts = np.concatenate([counts, _counts(words, batch, self.words)], axis=2)
        return counts.reshape(len(batch), -1)

    def finish(self, rows: Floats) -> Floats:
        precision, recall = self._averages(rows)
        square = self.beta**2
        weighted = square * precision + recall
        score = np.zeros(weighted.shape)
        np.divide((1 + square) * precision * recall, weighted, out=score, where=weighted > 0)
        return score

    def parts(self, rows: Floats) -> dict[str, Floats]:
        precision, recall = self._averages(rows)
        return {"precision": precision, "recall": recall}

    def _averages(self, rows: Floats) -> tuple[Floats, Floats]:
        orders = self.n + self.words
        matches, own, expected = np.split(rows, [orders, 2 * orders], axis=-1)
        used = (own > 0) & (expected > 0)
        many = np.maximum(used.sum(axis=-1), 1)

        def average(totals: Floats) -> Floats:
            shares = np.divide(matches, totals, out=np.zeros(matches.shape), where=used)
            # order by order, as in sacrebleu: another sequence rounds differently, and could
            # prefer another one of two equally good references
            return np.asarray(np.add.accumulate(shares, axis=-1)[..., -1] / many)

        return average(own), average(expected)


def _counts(tokens: Tokens, batch: Batch, order: int) -> Floats:
    """Return [n, 3, order] matches, n-grams of the reply and of the reference."""
    from rejoinder.kernels.ngrams import overlap

    matches = overlap(
        tokens.ids,
        tokens.starts,
        tokens.vocabulary_size,
        batch.reply,
        batch.reference,
        batch.first,
        np.ones_like(batch.weight),
        order,
    )
    own = np.maximum(tokens.lengths[batch.reply][:, None] - np.arange(order), 0)
    expected = np.maximum(tokens.lengths[batch.reference][:, None] - np.arange(order), 0)
    # in a sum over items, a reply's n-grams only count where its reference has some as well
    return np.stack([matches, np.where(expected > 0, own, 0), expected], axis=1)


@dataclass(frozen=True)
class ChrfWords(Tokenizer):
    """The words of chrF++.

    >>> ChrfWords().tokenize(['"Well," he said, (hi)'])
    [['"Well,', '"', 'he', 'said', ',', '(hi', ')']]
    """

    def tokenize(self, texts: Sequence[str]) -> list[list[str]]:
        return [[part for word in text.split() for part in _parts(word)] for text in texts]

    def signature(self) -> str:
        return "chrf"


def _parts(word: str) -> list[str]:
    if len(word) > 1 and word[-1] in PUNCTUATION:
        return [word[:-1], word[-1]]
    if len(word) > 1 and word[0] in PUNCTUATION:
        return [word[0], word[1:]]
    return [word]
