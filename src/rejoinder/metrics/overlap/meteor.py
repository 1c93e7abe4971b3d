"""``meteor``: F score of aligned words, stems and synonyms, with a penalty for fragmentation.

    P = m / |h|      R = m / |r|      F = P · R / (α · P + (1 - α) · R)
    METEOR = (1 - γ · (chunks / m)^β) · F

m words of the reply are aligned with words of the reference, and form chunks: runs of words that
are adjacent in both texts (Banerjee and Lavie 2005; the parameters are those of Lavie and Agarwal
2007).

Choices:

- The alignment is NLTK's: greedy, from the end of the texts, first equal words, then words
  with the same stem, then synonyms. METEOR's own program searches for the alignment with the
  fewest chunks, and weighs the stages differently.
- ``stem`` is a Snowball algorithm (``porter``, ``english``, ``german``, …) or ``none``. It
  expects lower case, so ``lower`` is true by default, as in NLTK.
- ``synonyms=wordnet`` needs NLTK and its WordNet (English); ``none`` leaves the stage out. As
  in NLTK, it looks up stems, not words, so a stem that is not a word itself has no synonyms; with
  ``stem=none`` it looks up the words.
- ``perfect``: one chunk that covers both texts is not penalised, as in METEOR 1.5; a reply that
  equals its reference scores 1. NLTK has no such rule, and gives it less: ``perfect=false``.
- Over several items matches, lengths and chunks are added up first, as METEOR's program does
  it; a perfect item adds no chunks. No matches at all is 0.

>>> import rejoinder
>>> spec = "meteor(tok=whitespace)"
>>> round(rejoinder.score_one(spec, "the cats sat down", ["the cat sat on a mat"]), 4)
0.5077
"""

# the example: the, cat(s), sat match in one chunk: P = 3/4, R = 3/6,
# F = 0.375 / (0.675 + 0.05) = 0.51724, penalty 0.5 · (1/3)³ = 0.01852, F · 0.98148 = 0.50766

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import metadata
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import MissingExtra
from rejoinder.metrics.batch import Batch, Floats, Ints
from rejoinder.metrics.metric import OverlapMetric, check_choice, check_range
from rejoinder.spec import did_you_mean

SYNONYMS = ("none", "wordnet")


@dataclass(frozen=True, kw_only=True)
class Meteor(OverlapMetric):
    name: ClassVar[str] = "meteor"
    summary: ClassVar[str] = "aligned words, stems and synonyms, in few chunks"

    alpha: float = 0.9
    beta: float = 3.0
    gamma: float = 0.5
    stem: str = "porter"
    synonyms: str = "none"
    perfect: bool = True
    lower: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("alpha", self.alpha, 0, 1)
        check_range("gamma", self.gamma, 0, 1)
        check_range("beta", self.beta, 0)
        check_choice("synonyms", self.synonyms, SYNONYMS)
        if self.stem != "none":
            _stemmer(self.stem)
        if self.synonyms == "wordnet":
            _wordnet()

    def _signed(self, key: str) -> str:
        if key == "stem" and self.stem != "none":
            return f"{self.stem}-snowball{metadata.version('snowballstemmer')}"
        if key == "synonyms" and self.synonyms == "wordnet":
            return f"wordnet{_wordnet().get_version()}"
        return super()._signed(key)

    def stats(self, batch: Batch) -> Floats:
        """Matches, length of the reply, length of the reference, and penalised chunks."""
        from rejoinder.kernels.meteor import align

        tokens = self.tokens(batch)
        number, stems = self._stems(tokens.words)
        first, synonyms = self._thesaurus(stems)
        matches, chunks = align(
            tokens.ids,
            number[tokens.ids],
            tokens.starts,
            first,
            synonyms,
            max(tokens.vocabulary_size, 1),
            batch.reply,
            batch.reference,
        )
        length, expected = tokens.lengths[batch.reply], tokens.lengths[batch.reference]
        if self.perfect:
            chunks[(chunks == 1) & (matches == length) & (matches == expected)] = 0
        return np.column_stack([matches, length, expected, chunks]).astype(np.float64)

    def _stems(self, words: list[str]) -> tuple[NDArray[np.int32], list[str]]:
        """Return the number of each word's stem, and the stems."""
        if self.stem == "none":
            return np.arange(len(words), dtype=np.int32), words
        number: dict[str, int] = {}
        stems = (_stem(self.stem, word) for word in words)
        numbers = [number.setdefault(stem, len(number)) for stem in stems]
        return np.array(numbers, np.int32), list(number)

    def _thesaurus(self, stems: list[str]) -> tuple[Ints, Ints]:
        """Return the synonyms of each stem that occur in the batch, concatenated."""
        if self.synonyms == "none":
            return np.zeros(1, np.int64), np.zeros(0, np.int64)
        number = {stem: i for i, stem in enumerate(stems)}
        synonyms = [[number[s] for s in _synonyms(stem) if s in number] for stem in stems]
        first = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(f) for f in synonyms])])
        return first.astype(np.int64), np.array([s for f in synonyms for s in f], np.int64)

    def finish(self, rows: Floats) -> Floats:
        precision, recall, penalty = self._ingredients(rows)
        weighted = self.alpha * precision + (1 - self.alpha) * recall
        mean = np.zeros(weighted.shape)
        np.divide(precision * recall, weighted, out=mean, where=weighted > 0)
        return np.asarray((1 - penalty) * mean)

    def parts(self, rows: Floats) -> dict[str, Floats]:
        precision, recall, penalty = self._ingredients(rows)
        return {"precision": precision, "recall": recall, "penalty": penalty}

    def _ingredients(self, rows: Floats) -> tuple[Floats, Floats, Floats]:
        matches, length, expected, chunks = np.moveaxis(rows, -1, 0)
        penalty = np.where(chunks > 0, self.gamma * _share(chunks, matches) ** self.beta, 0.0)
        return _share(matches, length), _share(matches, expected), penalty


def _share(part: Floats, whole: Floats) -> Floats:
    """Return part / whole; 0 if whole is 0."""
    return np.asarray(np.divide(part, whole, out=np.zeros(np.shape(part)), where=whole > 0))


@cache
def _stemmer(algorithm: str) -> Any:
    import snowballstemmer

    algorithms = snowballstemmer.algorithms()
    if algorithm not in algorithms:
        raise ValueError(
            f"stem={algorithm} is not a stemmer: {did_you_mean(algorithm, algorithms)}"
        )
    return snowballstemmer.stemmer(algorithm)


@lru_cache(maxsize=1 << 17)
def _stem(algorithm: str, word: str) -> str:
    stem: str = _stemmer(algorithm).stemWord(word)
    return stem


def _wordnet() -> Any:
    """Return NLTK's reader of WordNet; MissingExtra unless both are installed."""
    try:
        from nltk.corpus import wordnet

        wordnet.ensure_loaded()
    except (ImportError, LookupError, OSError):
        raise MissingExtra(
            "meteor(synonyms=wordnet) needs NLTK and its WordNet:"
            " pip install nltk and python -m nltk.downloader wordnet"
        ) from None
    return wordnet


@lru_cache(maxsize=1 << 17)
def _synonyms(word: str) -> frozenset[str]:
    """Return the one-word lemmas of all senses of a word, and the word itself."""
    lemmas = (lemma.name() for sense in _wordnet().synsets(word) for lemma in sense.lemmas())
    return frozenset(name for name in lemmas if "_" not in name) | {word}
