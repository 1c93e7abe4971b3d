"""Wrong replies to learn from: random ones, and hard ones that look right.

A reply is never wrong where it says the same as the true one, or as any that was given to the same
utterance.
Hard ones, where a pair has any: ``dialogue``, another turn of the same dialogue (right topic,
wrong place); ``words``, a reply that shares a word with the true one, but none that many have;
``vectors``, a neighbour of the true one by vector; ``matched``, of 60 random ones the one that is
about as near to the utterance, by vector, as the true one, so that nearness alone tells nothing;
``parrot``, the utterance itself. A pair that has none of a kind gets a random one.

"I see" is right in many places, and so a random "I see" is often no wrong reply: common replies can
be spared, and drawn less often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rejoinder.learn.batches import generator
from rejoinder.learn.material import Examples, Ints
from rejoinder.learn.settings import PARROT, RANDOM
from rejoinder.logs.contamination import normalise

Chance = np.random.Generator
Draw = Callable[[Ints, Chance], Ints]
"""For each row another one, or -1."""
Vectors = NDArray[np.float32]

TRIES = 10
"""Draws until a wrong reply must be found: only where few replies are wrong, more are needed."""
COMMON = 0.01
"""A word that more than this share of the replies has is no sign of likeness …"""
RARE = 20
"""… unless it stands in no more replies than these."""
NEIGHBOURS = 16
NEIGHBOURHOOD = 20_000
"""Replies among which neighbours are looked for, drawn at random from more."""
DRAWN = 60
"""Replies of which the best match is taken. Of all replies, it would often be right."""
SAME = 0.95
"""Cosine above which two replies mean the same: then the other one is not wrong."""
SHARPNESS = 10
"""A reply with the cosine c counts exp(10 c) as a neighbour."""
COMPARED = 4000
"""Replies among which neighbours are counted, drawn at random from more."""


class Negatives:
    """Draws wrong replies for pairs, by the numbers of their rows.

    A number from ``len(examples)`` on stands for an utterance: that of the row that many before.
    """

    def __init__(
        self,
        examples: Examples,
        kinds: Sequence[str],
        sentences: Callable[[Sequence[str]], Vectors] | None = None,
        spare: float = 0.0,
    ) -> None:
        """``sentences`` gives [n, d] vectors of length 1, for the kinds that need them, and for
        ``spare``: random replies are drawn the less often, the more common they are."""
        self._examples = examples
        makers: dict[str, Callable[[], Draw]] = {
            RANDOM: lambda: self._random,
            "dialogue": lambda: _from_same(examples.dialogues),
            "words": lambda: _sharing_words(examples.responses),
            PARROT: lambda: self._parrot,
        }
        if sentences is not None:
            makers["vectors"] = lambda: _near(sentences(examples.responses))
            makers["matched"] = lambda: _as_near(
                sentences(examples.utterances), sentences(examples.responses)
            )
            if spare:
                makers[RANDOM] = lambda: _sparing(sentences(examples.responses), spare)
        self._draws = [makers[kind]() for kind in kinds]

    def draw(self, rows: Ints, kinds: Ints, chance: Chance) -> Ints:
        """[n] a wrong reply for each row, of the kind of that number."""
        found = np.full(len(rows), -1, np.int64)
        for number, draw in enumerate([*self._draws, self._random]):
            mine = kinds == number if number < len(self._draws) else np.ones(len(rows), np.bool_)
            for _ in range(TRIES):
                open_ = np.flatnonzero(mine & (found < 0))
                if not len(open_):
                    break
                drawn = draw(rows[open_], chance)
                right = self._is_wrong(rows[open_], drawn)
                found[open_[right]] = drawn[right]
        left = found < 0
        found[left] = self._last_resort(rows[left], chance)
        return found

    def _is_wrong(self, rows: Ints, drawn: Ints) -> NDArray[np.bool_]:
        """Whether what was drawn is there, and is no right reply."""
        keys = self._keys(self._examples.groups[rows], self._said[drawn])
        known = self._right
        places = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        wrong: NDArray[np.bool_] = (drawn >= 0) & (known[places] != keys)
        return wrong

    def _last_resort(self, rows: Ints, chance: Chance) -> Ints:
        """Another reply, where draws found none that is wrong: each that says something counts
        once, however often it is said. If none is wrong, one that says something else; if all say
        the same, another row."""
        size, (replies, own) = len(self._examples), self._distinct
        if len(replies) < 2:
            other: Ints = (rows + 1 + chance.integers(max(1, size - 1), size=len(rows))) % size
            return other
        others = len(replies) - 1
        first = chance.integers(others, size=len(rows))
        found: Ints = replies[(own[rows] + 1 + first) % len(replies)]
        for step in range(1, min(TRIES, others)):
            open_ = np.flatnonzero(~self._is_wrong(rows, found))
            if not len(open_):
                break
            turned = 1 + (first[open_] + step) % others
            found[open_] = replies[(own[rows[open_]] + turned) % len(replies)]
        return found

    @cached_property
    def _right(self) -> Ints:
        """What was replied to what, sorted: one number for an utterance and a reply to it."""
        found: Ints = np.unique(
            self._keys(self._examples.groups, self._said[: len(self._examples)])
        )
        return found

    def _keys(self, groups: Ints, said: Ints) -> Ints:
        return groups * len(self._said) + said

    @cached_property
    def _distinct(self) -> tuple[Ints, Ints]:
        """A row of each reply that says something else, and for each row the place of its own."""
        said = self._said[: len(self._examples)]
        _, replies, own = np.unique(said, return_index=True, return_inverse=True)
        return replies, own

    @cached_property
    def _said(self) -> Ints:
        """[2n] numbers of what is said: of the responses, then of the utterances."""
        texts = normalise(self._examples.responses) + normalise(self._examples.utterances)
        known: dict[str, int] = {}
        return np.fromiter((known.setdefault(text, len(known)) for text in texts), np.int64)

    def _random(self, rows: Ints, chance: Chance) -> Ints:
        return chance.integers(len(self._examples), size=len(rows))

    def _parrot(self, rows: Ints, chance: Chance) -> Ints:
        return rows + len(self._examples)


class _Lists:
    """Rows with the same number, end to end."""

    def __init__(self, rows: Ints, numbers: Ints, count: int) -> None:
        self.rows = rows[np.argsort(numbers, kind="stable")]
        self.sizes = np.bincount(numbers, minlength=count)
        self.starts = np.cumsum(self.sizes) - self.sizes

    def draw(self, numbers: Ints, chance: Chance) -> Ints:
        """One of the list of each number, -1 of an empty one or of none."""
        sizes = np.where(numbers >= 0, self.sizes[numbers], 0)
        places = self.starts[numbers] + chance.integers(np.maximum(sizes, 1))
        return np.where(sizes > 0, self.rows[np.minimum(places, len(self.rows) - 1)], -1)


def _from_same(numbers: Ints) -> Draw:
    lists = _Lists(np.arange(len(numbers)), numbers, int(numbers.max()) + 1)
    return lambda rows, chance: lists.draw(numbers[rows], chance)


def _sharing_words(texts: Sequence[str]) -> Draw:
    known: dict[str, int] = {}
    pairs = [
        (known.setdefault(word, len(known)), row)
        for row, text in enumerate(texts)
        for word in sorted(words_of(text))  # sets have another order in each process
    ]
    words, rows = np.array(pairs, np.int64).reshape(-1, 2).T
    counts = np.bincount(words, minlength=1)
    telling = (counts > 1) & (counts <= max(RARE, COMMON * len(texts)))
    words, rows = words[telling[words]], rows[telling[words]]
    if not len(words):
        return lambda rows, chance: np.full(len(rows), -1, np.int64)
    having, of_row = _Lists(rows, words, len(counts)), _Lists(words, rows, len(texts))
    return lambda rows, chance: having.draw(of_row.draw(rows, chance), chance)


def words_of(text: str) -> set[str]:
    """Its words; pairs of characters where words are not set apart by spaces.

    >>> sorted(words_of("The kitchen, the KITCHEN"))
    ['kitchen', 'the']
    >>> sorted(words_of("台所です"))
    ['です', '台所', '所で']
    """
    together, apart = _patterns()
    text = text.casefold()
    found = set(apart.findall(together.sub(" ", text)))
    for run in together.findall(text):
        found |= {run[i : i + 2] for i in range(max(1, len(run) - 1))}
    return found


@cache
def _patterns() -> tuple[Any, Any]:
    import regex

    scripts = ("Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar")
    letters = "".join(rf"\p{{Script={name}}}" for name in scripts)
    return regex.compile(f"[{letters}ー]+"), regex.compile(r"\w+")


def _near(vectors: Vectors) -> Draw:
    """Neighbours by cosine, of vectors of length 1."""
    found = neighbours(vectors)

    def draw(rows: Ints, chance: Chance) -> Ints:
        return found[rows, chance.integers(found.shape[1], size=len(rows))]

    return draw


def _as_near(utterances: Vectors, responses: Vectors) -> Draw:
    def draw(rows: Ints, chance: Chance) -> Ints:
        drawn = chance.integers(len(responses), size=(len(rows), DRAWN))
        cosines = np.einsum("nd,nkd->nk", utterances[rows], responses[drawn])
        true = np.einsum("nd,nd->n", utterances[rows], responses[rows])
        closest: Ints = np.abs(cosines - true[:, None]).argmin(axis=1)
        return drawn[np.arange(len(rows)), closest]

    return draw


def _sparing(vectors: Vectors, spare: float) -> Draw:
    bounds = np.cumsum(np.exp(-spare * commonness(vectors)))

    def draw(rows: Ints, chance: Chance) -> Ints:
        drawn: Ints = np.searchsorted(bounds, chance.random(len(rows)) * bounds[-1], side="right")
        return np.minimum(drawn, len(bounds) - 1)

    return draw


def commonness(vectors: Vectors) -> NDArray[np.float64]:
    """[n] how densely others lie around each, on a scale where all have mean 0 and spread 1."""
    pool = _some(len(vectors), COMPARED)
    if len(pool) < 2:
        return np.zeros(len(vectors))
    found = np.empty(len(vectors))
    for start, cosines in _compared(vectors, pool):
        # nobody is a neighbour of their own, least of all those alone who happened to be drawn
        own = np.flatnonzero((pool >= start) & (pool < start + len(cosines)))
        drawn = pool[own] - start
        cosines[drawn, own] = -torch.inf
        others = np.full(len(cosines), len(pool))
        others[drawn] -= 1
        dense = (SHARPNESS * cosines).logsumexp(dim=1).numpy() - np.log(others)
        found[start : start + len(cosines)] = dense
    found -= found.mean()
    return found / (found.std() or 1.0)


def neighbours(vectors: Vectors) -> Ints:
    """[n, k] rows that are near each row, but do not mean the same; -1 where there are fewer."""
    pool = _some(len(vectors), NEIGHBOURHOOD)
    found = np.full((len(vectors), min(NEIGHBOURS, len(pool))), -1, np.int64)
    for start, cosines in _compared(vectors, pool):
        cosines[cosines > SAME] = -1.0
        best, places = cosines.topk(found.shape[1], dim=1)
        some = pool[places.numpy()]
        found[start : start + len(some)] = np.where(best.numpy() > 0, some, -1)
    return found


def _some(size: int, most: int) -> Ints:
    """All rows, or so many of them, drawn at random."""
    if size <= most:
        return np.arange(size)
    return np.sort(generator(size).choice(size, most, replace=False))


def _compared(vectors: Vectors, pool: Ints) -> Iterator[tuple[int, torch.Tensor]]:
    """Block by block, the first row of it, and [rows, pool] the cosines with those of the pool."""
    others = torch.from_numpy(np.ascontiguousarray(vectors[pool].T))
    for start in range(0, len(vectors), 1024):
        yield start, torch.from_numpy(vectors[start : start + 1024]) @ others
