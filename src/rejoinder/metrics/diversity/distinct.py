"""``distinct``: share of distinct n-grams (Li et al. 2016).

    Distinct-n = distinct n-grams of all replies / n-grams of all replies

A system that repeats itself scores near 0. The value falls as the number of replies grows, so
compare systems only over the same contexts. It needs no references.

Choices: the replies of a system are pooled, as in Li et al.; the value of a context is that of its
own replies. n-grams do not cross the end of a reply. A set without n-grams has no value.

>>> from rejoinder.items import Item
>>> from rejoinder.metrics.evaluate import score_sets
>>> items = [Item(id="a", response="i see"), Item(id="b", response="i know")]
>>> [score.value for score in score_sets(items, [Distinct(n=1)])]
[0.75]
"""

# the example: i see know are 3 distinct words of 4

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.metrics.batch import Batch, Ints
from rejoinder.metrics.metric import SetMetric, check_range
from rejoinder.metrics.tokenized import Tokenized


@dataclass(frozen=True, kw_only=True)
class TokenizedSet(Tokenized, SetMetric):
    """A metric of the tokens of a set of replies, without references."""

    needs: ClassVar[frozenset[str]] = frozenset()

    n: int

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.tokenizer
        check_range("n", self.n, 1, 16)

    def reason(self, batch: Batch) -> str | None:
        problems = self.tokens(batch).problems
        wrong = [problems[text] for text in batch.reply.tolist() if text in problems]
        if wrong:
            return f"{wrong[0]} ({len(wrong)} of {len(batch)} replies)"
        return super().reason(batch)


@dataclass(frozen=True, kw_only=True)
class NgramSet(TokenizedSet):
    """A metric of the counts of n-grams over all replies together."""

    pooled: ClassVar[bool] = True

    def reason(self, batch: Batch) -> str | None:
        if (missing := super().reason(batch)) is not None:
            return missing
        if self.tokens(batch).lengths[batch.reply].max() < self.n:
            return f"no {self.n}-grams: every reply is shorter"
        return None

    def counts(self, batch: Batch) -> Ints:
        """Return the number of occurrences of each distinct n-gram."""
        tokens = self.tokens(batch)
        lengths = tokens.lengths[batch.reply]
        ends = np.cumsum(lengths)
        shift = np.repeat(tokens.starts[batch.reply] - (ends - lengths), lengths)
        ids = tokens.ids[shift + np.arange(len(shift))].astype(np.int64)
        # number of tokens of the reply from each position on
        left = np.repeat(ends, lengths) - np.arange(len(ids))
        at, grams = np.arange(len(ids)), ids
        for n in range(1, self.n):
            # an n-gram is the pair of a shorter one and the next token, renumbered
            longer = left[at] > n
            at, grams = at[longer], grams[longer]
            pairs = grams * np.int64(tokens.vocabulary_size) + ids[at + n]
            grams = np.unique(pairs, return_inverse=True)[1]
        return np.unique(grams, return_counts=True)[1]


@dataclass(frozen=True, kw_only=True)
class Distinct(NgramSet):
    name: ClassVar[str] = "distinct"
    summary: ClassVar[str] = "share of distinct n-grams among all n-grams"

    n: int = 2

    def measure(self, batch: Batch) -> float:
        counts = self.counts(batch)
        return float(len(counts) / counts.sum())
