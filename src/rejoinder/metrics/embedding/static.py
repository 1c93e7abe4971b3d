"""Base classes of metrics over word vectors, and how they treat words without a vector.

Words without a vector are left out. A reply of such words only is unscored, a reference of such
words only is left out. A blank reply is 0, as for every metric.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from rejoinder.metrics.batch import Batch, Floats, Ints
from rejoinder.metrics.embedding.vectors import Codes, Vectors, cosines, unit
from rejoinder.metrics.metric import OverlapMetric
from rejoinder.metrics.reasons import Reasons
from rejoinder.text.tokens import Tokens

if TYPE_CHECKING:
    from rejoinder.encode.static import WordVectors

UNKNOWN_REPLY = "no word of the reply has a vector"
UNKNOWN_REFERENCES = "no word of any reference has a vector"


def add_missing_vectors(reasons: Reasons, batch: Batch, has_vector: NDArray[np.bool_]) -> Reasons:
    """Add the reasons of items whose reply or references have no vector.

    ``has_vector`` [texts of the table] says which texts have one. Blank replies need none.
    """
    free = np.array([reason is None for reason in reasons], dtype=bool)
    there = np.concatenate([np.zeros(1, np.int64), np.cumsum(has_vector[batch.reference])])
    reasons[free & (np.diff(there[batch.first]) == 0)] = UNKNOWN_REFERENCES
    has_text = ~batch.table.blank[batch.reply]
    reasons[free & has_text & ~has_vector[batch.reply]] = UNKNOWN_REPLY
    return reasons


@dataclass(frozen=True)
class KnownWords:
    """The words of all texts of a table that have a vector, concatenated."""

    ids: Codes
    starts: Ints
    vectors: Vectors
    """[words, d]: the vector of the word numbered i is ``vectors[i]``."""
    share: Floats
    """[texts] share of the words that have a vector; 1 for a text without words."""

    @classmethod
    def of(cls, tokens: Tokens, table: WordVectors) -> KnownWords:
        vectors, has_vector = table.find(tokens.words)
        good = has_vector[tokens.ids]
        kept = np.concatenate([np.zeros(1, np.int64), np.cumsum(good)])
        starts = kept[tokens.starts]
        share = np.diff(starts) / np.maximum(tokens.lengths, 1)
        share[tokens.lengths == 0] = 1.0
        return cls(tokens.ids[good], starts, vectors, share)

    @property
    def counts(self) -> Ints:
        """[texts] number of words with a vector."""
        return np.diff(self.starts)

    @cached_property
    def directions(self) -> Vectors:
        """The vectors, normalised to length 1."""
        return unit(self.vectors)

    def take(self, texts: Ints) -> tuple[Codes, Ints]:
        """Return the words of these texts, concatenated, and where each text begins and ends."""
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.counts[texts])])
        shift = np.repeat(self.starts[texts] - starts[:-1], self.counts[texts])
        return self.ids[shift + np.arange(starts[-1])], starts


@dataclass(frozen=True, kw_only=True)
class StaticMetric(OverlapMetric):
    """A similarity of the words of a reply to those of one reference."""

    max_characters: ClassVar[int | None] = 2**18

    vectors: str = "minilm"
    lower: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.word_vectors

    @cached_property
    def word_vectors(self) -> WordVectors:
        from rejoinder.encode.static import open_vectors

        return open_vectors(self.vectors)

    def _signed(self, key: str) -> str:
        if key == "vectors":
            return f"{self.word_vectors.name}@{self.word_vectors.digest}"
        return super()._signed(key)

    def languages(self) -> dict[str, frozenset[str]]:
        languages = self.word_vectors.languages
        return (
            {} if languages is None else {f"the word vectors {self.word_vectors.name}": languages}
        )

    def known_words(self, batch: Batch) -> KnownWords:
        """Return the words of the batch that have a vector, looked up once for all metrics."""
        return batch.table.cached(
            (KnownWords, self.tokenizer, self.lower, self.word_vectors.digest),
            lambda: KnownWords.of(self.tokens(batch), self.word_vectors),
        )

    def reasons(self, batch: Batch) -> Reasons:
        return add_missing_vectors(
            super().reasons(batch), batch, self.known_words(batch).counts > 0
        )

    def _readable(self, batch: Batch) -> NDArray[np.bool_]:
        """Return [m] which references have a word with a vector."""
        return np.asarray(self.known_words(batch).counts[batch.reference] > 0)

    def rows(self, batch: Batch) -> Floats:
        return super().rows(batch.keep_references(self._readable(batch)))

    def stats(self, batch: Batch) -> Floats:
        """The similarity, shares of known words of reply and reference, 1, and the parts."""
        words = self.known_words(batch)
        there = words.counts[batch.reply] > 0
        compared = self.compare(words, batch.reply[there], batch.reference[there])
        rows = np.zeros((len(batch), 3 + compared.shape[1]))
        rows[there, 0] = compared[:, 0]
        rows[there, 4:] = compared[:, 1:]
        rows[:, 1], rows[:, 2], rows[:, 3] = (
            words.share[batch.reply],
            words.share[batch.reference],
            1,
        )
        return rows

    @abstractmethod
    def compare(self, words: KnownWords, reply: Ints, reference: Ints) -> Floats:
        """Return [n, 1 + parts] the similarity of each reply to its reference, and its parts."""

    def finish(self, rows: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            return np.asarray(rows[..., 0] / rows[..., 3])

    def parts(self, rows: Floats) -> dict[str, Floats]:
        with np.errstate(invalid="ignore"):
            means = rows / rows[..., 3:4]
        return {"known_reply": means[..., 1], "known_reference": means[..., 2]}


@dataclass(frozen=True, kw_only=True)
class PooledMetric(StaticMetric):
    """The cosine of two texts, each pooled into one vector."""

    def compare(self, words: KnownWords, reply: Ints, reference: Ints) -> Floats:
        texts, place = np.unique(np.concatenate([reply, reference]), return_inverse=True)
        pooled = self.pool(words.vectors, *words.take(texts))
        return cosines(pooled, place[: len(reply)], place[len(reply) :])[:, None]

    @abstractmethod
    def pool(self, vectors: Vectors, ids: Codes, starts: Ints) -> Vectors:
        """Return [texts, …] one vector per text; text i has the words ids[starts[i]:starts[i + 1]],
        and word j the vector vectors[j]."""
