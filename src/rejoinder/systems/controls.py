"""Control systems with bad replies, which a metric must rank below good systems.

``random``: a random response of the pool.
``parrot``: repeats the last turn.
``dull``: the most frequent responses of the pool, such as "I don't know", which fit nearly anywhere
(Li et al. 2016, "A diversity-promoting objective function for neural conversation models").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rejoinder.systems.system import MAX_SEED, Replies, Request, System, context_rng, distinct

if TYPE_CHECKING:
    from rejoinder.retrieve.pool import Pool

NOTHING_LEFT = "every pair of the pool is a leak"
SLICE = 100_000
MAX_TOP = 10_000
TRIES = 4
"""Rows that are drawn for each wanted reply: some have the same text."""


@dataclass(frozen=True, kw_only=True)
class Seeded(System):
    """A system that draws at random."""

    seed: int = 12345

    def __post_init__(self) -> None:
        if not 0 <= self.seed <= MAX_SEED:
            raise ValueError(f"seed={self.seed} is not from 0 to {MAX_SEED}")


@dataclass(frozen=True, kw_only=True)
class RandomReply(Seeded):
    """Draws each pair of the pool with the same probability."""

    name: ClassVar[str] = "random"
    summary: ClassVar[str] = "a random response of the pool"

    def answer(self, contexts: Sequence[Sequence[str]], request: Request) -> list[Replies]:
        assert request.pool is not None
        rows = np.arange(request.pool.size)
        if request.leaks is not None:
            rows = rows[~request.leaks]
        if not rows.size:
            return [Replies(reason=NOTHING_LEFT)] * len(contexts)
        count = request.n if request.n == 1 else TRIES * request.n
        drawn = np.stack(
            [rows[context_rng(self.seed, c).integers(rows.size, size=count)] for c in contexts]
        )
        texts = request.pool.responses(drawn.ravel())
        return [
            Replies(distinct(texts[i * count : (i + 1) * count], request.n))
            for i in range(len(contexts))
        ]


@dataclass(frozen=True, kw_only=True)
class Parrot(System):
    """Repeats the last turn: the lower baseline of Galley et al. 2015."""

    name: ClassVar[str] = "parrot"
    summary: ClassVar[str] = "repeats the last turn"
    needs_pool: ClassVar[bool] = False

    def answer(self, contexts: Sequence[Sequence[str]], request: Request) -> list[Replies]:
        return [Replies((context[-1],)) for context in contexts]


@dataclass(frozen=True, kw_only=True)
class Dull(Seeded):
    """Draws one of the ``top`` most frequent responses, with their relative frequencies.

    ``dull(top=1)`` gives the same reply to every context. Responses that differ only in case,
    spaces and punctuation count as one, and are given in their most frequent form.
    """

    name: ClassVar[str] = "dull"
    summary: ClassVar[str] = "one of the most frequent responses of the pool"

    top: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.top <= MAX_TOP:
            raise ValueError(f"top={self.top} is not from 1 to {MAX_TOP}")

    def answer(self, contexts: Sequence[Sequence[str]], request: Request) -> list[Replies]:
        assert request.pool is not None
        frequent = most_frequent(request.pool, self.top)
        if not frequent:
            return [Replies(reason="no response of the pool has a letter")] * len(contexts)
        texts = list(frequent)
        counts = np.array(list(frequent.values()), float)
        share = counts / counts.sum()
        replies = []
        for context in contexts:
            size = min(request.n, len(texts))
            chosen = context_rng(self.seed, context).choice(
                len(texts), size=size, replace=False, p=share
            )
            replies.append(Replies(tuple(texts[i] for i in chosen)))
        return replies


def most_frequent(pool: Pool, top: int) -> dict[str, int]:
    """Return the most frequent responses with their counts; ties in the order of the pool.

    Only a hash of each response is kept while counting, so that large pools fit into memory.
    """
    from rejoinder.logs.contamination import normalise

    keys = np.empty(pool.size, np.int64)
    for start in range(0, pool.size, SLICE):
        rows = np.arange(start, min(start + SLICE, pool.size))
        keys[rows] = [hash(text) for text in normalise(pool.responses(rows))]
    distinct_keys, first, counts = np.unique(keys, return_index=True, return_counts=True)
    has_letters = distinct_keys != hash("")
    order = np.lexsort((first[has_letters], -counts[has_letters]))[:top]
    frequent: dict[str, int] = {}
    for key, count in zip(
        distinct_keys[has_letters][order], counts[has_letters][order].tolist(), strict=True
    ):
        forms = Counter(pool.responses(np.flatnonzero(keys == key)))
        frequent[max(forms, key=lambda text: (forms[text], text))] = count
    return frequent
