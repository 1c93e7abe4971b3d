"""Negatives: random replies, and hard ones that look right.

A reply that equals a true response to the same utterance is never used as a negative. Kinds of hard
negatives: ``dialogue``, another turn of the same dialogue (right topic, wrong place); ``words``, a
reply that shares a word with the true one, but not a frequent word; ``vectors``, a neighbour of the
true reply by sentence vector; ``matched``, of 60 random replies the one whose cosine to the
utterance is closest to that of the true reply, so that the cosine alone tells nothing; ``parrot``,
the utterance itself. Where a pair has no negative of a kind, it gets a random one.

"I see" fits many contexts, so that a random "I see" is often no negative: frequent replies can be
drawn less often (``frequent_reply_discount``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rejoinder.learn.batches import make_rng
from rejoinder.learn.settings import PARROT, RANDOM
from rejoinder.learn.training_data import Ints, Pairs
from rejoinder.logs.contamination import normalise

Rng = np.random.Generator
Draw = Callable[[Ints, Rng], Ints]
"""Returns another row for each row, or -1."""
Vectors = NDArray[np.float32]

MAX_TRIES = 10
"""Draws of one kind; more are needed only where few replies are negatives."""
FREQUENT_WORD = 0.01
"""Words in more than this share of the replies are not used to find similar replies …"""
MIN_FREQUENT = 20
"""… unless they occur in at most this many replies."""
NEIGHBOURS = 16
MAX_NEIGHBOUR_POOL = 20_000
"""Replies among which neighbours are searched, drawn at random from more."""
MATCH_CANDIDATES = 60
"""Random replies of which the best match is taken. Among all replies, it would often be right."""
SAME_MEANING = 0.95
"""Cosine above which two replies are taken to mean the same, so that neither is a negative."""
SHARPNESS = 10
"""A reply with cosine c contributes exp(10 c) to the density around another one."""
MAX_DENSITY_POOL = 4000
"""Replies by which the density is estimated, drawn at random from more."""


class NegativeSampler:
    """Draws negatives for pairs, by row number.

    A number of ``len(pairs) + k`` means the utterance of row k (``parrot``).
    """

    def __init__(
        self,
        pairs: Pairs,
        kinds: Sequence[str],
        encode: Callable[[Sequence[str]], Vectors] | None = None,
        frequent_reply_discount: float = 0.0,
    ) -> None:
        """``encode`` returns [n, d] vectors of length 1, for kinds that need them and for
        ``frequent_reply_discount``."""
        self._pairs = pairs
        makers: dict[str, Callable[[], Draw]] = {
            RANDOM: lambda: self._random,
            "dialogue": lambda: _same_number(pairs.dialogues),
            "words": lambda: _sharing_words(pairs.responses),
            PARROT: lambda: self._parrot,
        }
        if encode is not None:
            makers["vectors"] = lambda: _near(encode(pairs.responses))
            makers["matched"] = lambda: _matched(encode(pairs.utterances), encode(pairs.responses))
            if frequent_reply_discount:
                makers[RANDOM] = lambda: _discounting_frequent(
                    encode(pairs.responses), frequent_reply_discount
                )
        self._draws = [makers[kind]() for kind in kinds]

    def draw(self, rows: Ints, kinds: Ints, rng: Rng) -> Ints:
        """[n] draw a negative for each row; ``kinds`` are indices into the kinds."""
        drawn = np.full(len(rows), -1, np.int64)
        for number, draw in enumerate([*self._draws, self._random]):
            mine = kinds == number if number < len(self._draws) else np.ones(len(rows), np.bool_)
            for _ in range(MAX_TRIES):
                missing = np.flatnonzero(mine & (drawn < 0))
                if not len(missing):
                    break
                candidates = draw(rows[missing], rng)
                valid = self._is_negative(rows[missing], candidates)
                drawn[missing[valid]] = candidates[valid]
        missing_rows = drawn < 0
        drawn[missing_rows] = self._fallback(rows[missing_rows], rng)
        return drawn

    def _is_negative(self, rows: Ints, candidates: Ints) -> NDArray[np.bool_]:
        """Return whether each candidate exists and is not a true response."""
        keys = self._keys(self._pairs.utterance_ids[rows], self._text_ids[candidates])
        true_keys = self._true_keys
        places = np.minimum(np.searchsorted(true_keys, keys), len(true_keys) - 1)
        negative: NDArray[np.bool_] = (candidates >= 0) & (true_keys[places] != keys)
        return negative

    def _fallback(self, rows: Ints, rng: Rng) -> Ints:
        """Draw uniformly from distinct replies, where no negative was drawn.

        If all replies are true responses, the result is a different reply; if all replies are the
        same, another row.
        """
        size, (replies, own) = len(self._pairs), self._distinct
        if len(replies) < 2:
            other: Ints = (rows + 1 + rng.integers(max(1, size - 1), size=len(rows))) % size
            return other
        num_others = len(replies) - 1
        first = rng.integers(num_others, size=len(rows))
        drawn: Ints = replies[(own[rows] + 1 + first) % len(replies)]
        for step in range(1, min(MAX_TRIES, num_others)):
            wrong = np.flatnonzero(~self._is_negative(rows, drawn))
            if not len(wrong):
                break
            shifted = 1 + (first[wrong] + step) % num_others
            drawn[wrong] = replies[(own[rows[wrong]] + shifted) % len(replies)]
        return drawn

    @cached_property
    def _true_keys(self) -> Ints:
        """One number for each utterance with a true response, sorted."""
        keys: Ints = np.unique(
            self._keys(self._pairs.utterance_ids, self._text_ids[: len(self._pairs)])
        )
        return keys

    def _keys(self, utterance_ids: Ints, text_ids: Ints) -> Ints:
        return utterance_ids * len(self._text_ids) + text_ids

    @cached_property
    def _distinct(self) -> tuple[Ints, Ints]:
        """One row of each distinct reply, and for each row the index of its own reply in it."""
        responses = self._text_ids[: len(self._pairs)]
        _, replies, own = np.unique(responses, return_index=True, return_inverse=True)
        return replies, own

    @cached_property
    def _text_ids(self) -> Ints:
        """[2n] numbers of distinct texts: of the responses, then of the utterances."""
        texts = normalise(self._pairs.responses) + normalise(self._pairs.utterances)
        numbers: dict[str, int] = {}
        return np.fromiter((numbers.setdefault(text, len(numbers)) for text in texts), np.int64)

    def _random(self, rows: Ints, rng: Rng) -> Ints:
        return rng.integers(len(self._pairs), size=len(rows))

    def _parrot(self, rows: Ints, rng: Rng) -> Ints:
        return rows + len(self._pairs)


class _Groups:
    """Rows grouped by a number, stored one group after the other."""

    def __init__(self, rows: Ints, numbers: Ints, count: int) -> None:
        self.rows = rows[np.argsort(numbers, kind="stable")]
        self.sizes = np.bincount(numbers, minlength=count)
        self.starts = np.cumsum(self.sizes) - self.sizes

    def draw(self, numbers: Ints, rng: Rng) -> Ints:
        """Draw a row of each group; -1 for an empty group, or for the number -1."""
        sizes = np.where(numbers >= 0, self.sizes[numbers], 0)
        places = self.starts[numbers] + rng.integers(np.maximum(sizes, 1))
        return np.where(sizes > 0, self.rows[np.minimum(places, len(self.rows) - 1)], -1)


def _same_number(numbers: Ints) -> Draw:
    groups = _Groups(np.arange(len(numbers)), numbers, int(numbers.max()) + 1)
    return lambda rows, rng: groups.draw(numbers[rows], rng)


def _sharing_words(texts: Sequence[str]) -> Draw:
    numbers: dict[str, int] = {}
    occurrences = [
        (numbers.setdefault(word, len(numbers)), row)
        for row, text in enumerate(texts)
        for word in sorted(words_of(text))  # the order of a set differs between processes
    ]
    words, rows = np.array(occurrences, np.int64).reshape(-1, 2).T
    counts = np.bincount(words, minlength=1)
    telling = (counts > 1) & (counts <= max(MIN_FREQUENT, FREQUENT_WORD * len(texts)))
    words, rows = words[telling[words]], rows[telling[words]]
    if not len(words):
        return lambda rows, rng: np.full(len(rows), -1, np.int64)
    rows_of_word, words_of_row = _Groups(rows, words, len(counts)), _Groups(words, rows, len(texts))
    return lambda rows, rng: rows_of_word.draw(words_of_row.draw(rows, rng), rng)


def words_of(text: str) -> set[str]:
    """Return the words of a text; character bigrams in scripts that are written without spaces.

    >>> sorted(words_of("The kitchen, the KITCHEN"))
    ['kitchen', 'the']
    >>> sorted(words_of("台所です"))
    ['です', '台所', '所で']
    """
    unspaced, word = _patterns()
    text = text.casefold()
    words = set(word.findall(unspaced.sub(" ", text)))
    for run in unspaced.findall(text):
        words |= {run[i : i + 2] for i in range(max(1, len(run) - 1))}
    return words


@cache
def _patterns() -> tuple[Any, Any]:
    import regex

    scripts = ("Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar")
    letters = "".join(rf"\p{{Script={name}}}" for name in scripts)
    return regex.compile(f"[{letters}ー]+"), regex.compile(r"\w+")


def _near(vectors: Vectors) -> Draw:
    nearest = neighbours(vectors)

    def draw(rows: Ints, rng: Rng) -> Ints:
        return nearest[rows, rng.integers(nearest.shape[1], size=len(rows))]

    return draw


def _matched(utterances: Vectors, responses: Vectors) -> Draw:
    def draw(rows: Ints, rng: Rng) -> Ints:
        candidates = rng.integers(len(responses), size=(len(rows), MATCH_CANDIDATES))
        cosines = np.einsum("nd,nkd->nk", utterances[rows], responses[candidates])
        true = np.einsum("nd,nd->n", utterances[rows], responses[rows])
        closest: Ints = np.abs(cosines - true[:, None]).argmin(axis=1)
        return candidates[np.arange(len(rows)), closest]

    return draw


def _discounting_frequent(vectors: Vectors, discount: float) -> Draw:
    bounds = np.cumsum(np.exp(-discount * reply_density(vectors)))

    def draw(rows: Ints, rng: Rng) -> Ints:
        drawn: Ints = np.searchsorted(bounds, rng.random(len(rows)) * bounds[-1], side="right")
        return np.minimum(drawn, len(bounds) - 1)

    return draw


def reply_density(vectors: Vectors) -> NDArray[np.float64]:
    """[n] log density of replies around each reply, standardised to mean 0 and deviation 1."""
    pool = _sample_rows(len(vectors), MAX_DENSITY_POOL)
    if len(pool) < 2:
        return np.zeros(len(vectors))
    density = np.empty(len(vectors))
    for start, cosines in _cosine_blocks(vectors, pool):
        # a reply of the pool does not count as its own neighbour
        own = np.flatnonzero((pool >= start) & (pool < start + len(cosines)))
        in_pool = pool[own] - start
        cosines[in_pool, own] = -torch.inf
        pool_sizes = np.full(len(cosines), len(pool))
        pool_sizes[in_pool] -= 1
        block = (SHARPNESS * cosines).logsumexp(dim=1).numpy() - np.log(pool_sizes)
        density[start : start + len(cosines)] = block
    density -= density.mean()
    return density / (density.std() or 1.0)


def neighbours(vectors: Vectors) -> Ints:
    """[n, k] nearest rows by cosine that do not mean the same; -1 where there are fewer."""
    pool = _sample_rows(len(vectors), MAX_NEIGHBOUR_POOL)
    nearest = np.full((len(vectors), min(NEIGHBOURS, len(pool))), -1, np.int64)
    for start, cosines in _cosine_blocks(vectors, pool):
        cosines[cosines > SAME_MEANING] = -1.0
        best, places = cosines.topk(nearest.shape[1], dim=1)
        rows = pool[places.numpy()]
        nearest[start : start + len(rows)] = np.where(best.numpy() > 0, rows, -1)
    return nearest


def _sample_rows(size: int, max_rows: int) -> Ints:
    """Return all rows, or a random sample of them in order."""
    if size <= max_rows:
        return np.arange(size)
    return np.sort(make_rng(size).choice(size, max_rows, replace=False))


def _cosine_blocks(vectors: Vectors, pool: Ints) -> Iterator[tuple[int, torch.Tensor]]:
    """Yield the first row of each block and its [rows, pool] cosines with the pool."""
    pool_vectors = torch.from_numpy(np.ascontiguousarray(vectors[pool].T))
    for start in range(0, len(vectors), 1024):
        yield start, torch.from_numpy(vectors[start : start + 1024]) @ pool_vectors
