"""The k best rows for each query, kept while a pool streams by.

Similarities of a whole block come from one matrix product in float32, whose last digits depend
on how the product was cut up. So they only decide where to look: a row that comes within
``margin`` of the k-th best is computed again in float64, in a fixed order, and rounded to
float32. The result is that of looking at every row by hand, whatever the blocks. Of equal rows
the lower one is better; a similarity of 0 is none.

``held`` carries a number for what the row holds (a hash of its response); if rows are to be
distinct, only the best row of each number stays.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rejoinder import machine
from rejoinder.kernels.compiled import compiled

Ints = NDArray[np.int64]
Vectors = NDArray[np.float32]
Mask = NDArray[np.bool_]

CHUNK = 64
"""Similarities that are looked at together: most chunks hold none that is good enough."""


@compiled
def _before(score, row, other_score, other_row):
    return score > other_score or (score == other_score and row < other_row)


@compiled
def keep(scores, rows, held, score, row, holds, distinct):
    """Put a row where it belongs among the best of one query, which are sorted."""
    place = scores.size - 1
    if distinct:
        for i in range(scores.size):
            if rows[i] >= 0 and held[i] == holds:
                place = i
                break
    if not _before(score, row, scores[place], rows[place]):
        return
    while place > 0 and _before(score, row, scores[place - 1], rows[place - 1]):
        scores[place], rows[place] = scores[place - 1], rows[place - 1]
        held[place] = held[place - 1]
        place -= 1
    scores[place], rows[place], held[place] = score, row, holds


@compiled
def _dot(a, b):
    total = 0.0
    for i in range(a.size):
        total += np.float64(a[i]) * np.float64(b[i])
    return total


@compiled
def _offer(
    low, high, near, other_near, asked, other_asked, pool, other_pool, first, skip, holds,
    distinct, margin, scores, rows, held,
):  # fmt: skip
    width, last, both = near.shape[1], scores.shape[1] - 1, other_near.size > 0
    zero = np.float32(0)
    for q in range(low, high):
        limit = np.float32(scores[q, last] - margin)
        line = near[q]
        other = other_near[q] if both else line
        for begin in range(0, width, CHUNK):
            end = min(begin + CHUNK, width)
            found = 0
            if both:
                for j in range(begin, end):
                    found += max(line[j], zero) * max(other[j], zero) >= limit
            else:
                for j in range(begin, end):
                    found += line[j] >= limit
            if found == 0:
                continue
            for j in range(begin, end):
                value = max(line[j], zero) * max(other[j], zero) if both else line[j]
                if value < limit or skip[j]:
                    continue
                exact = _dot(asked[q], pool[j])
                if both:
                    exact = max(exact, 0.0) * max(_dot(other_asked[q], other_pool[j]), 0.0)
                score = np.float32(exact)
                if score == 0:
                    continue
                number = holds[j] if distinct else 0
                keep(scores[q], rows[q], held[q], score, first + j, number, distinct)
                limit = np.float32(scores[q, last] - margin)


@compiled
def _rescore(low, high, wanted, asked, pool, skip, holds, distinct, scores, rows, held):
    for q in range(low, high):
        for i in range(wanted.shape[1]):
            row = wanted[q, i]
            if row < 0 or (skip.size and skip[row]):
                continue
            score = np.float32(_dot(asked[q], pool[row]))
            if score != 0:
                number = holds[row] if distinct else 0
                keep(scores[q], rows[q], held[q], score, row, number, distinct)


@compiled
def _skip_blank(vectors, skip):
    for j in range(vectors.shape[0]):
        blank = True
        for i in range(vectors.shape[1]):
            if vectors[j, i] != 0:
                blank = False
                break
        if blank:
            skip[j] = True


NO_VECTORS: Vectors = np.zeros((0, 0), np.float32)
NO_NUMBERS: Ints = np.zeros(0, np.int64)
NO_MASK: Mask = np.zeros(0, np.bool_)


def cores() -> int:
    """How many threads to use: what the scheduler of a cluster says, or what this process has."""
    said = os.environ.get("OMP_NUM_THREADS", "")
    if said.isdecimal() and int(said):
        return int(said)
    return machine.cores()


class Threads:
    """Compiled loops over queries, a slice of them in each thread; use as a context manager."""

    def __init__(self) -> None:
        self._count = cores()
        self._pool = ThreadPoolExecutor(self._count) if self._count > 1 else None

    def run(self, work: Callable[[int, int], None], count: int) -> None:
        """Call ``work(low, high)`` for slices of 0 … count."""
        if self._pool is None or count < 2:
            work(0, count)
            return
        # more slices than threads: some queries have more to do than others
        bounds = np.linspace(0, count, min(count, 4 * self._count) + 1).astype(int).tolist()
        jobs = [self._pool.submit(work, low, high) for low, high in pairwise(bounds)]
        for job in jobs:
            job.result()

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()


@dataclass(frozen=True)
class Best:
    """The best rows of each query so far, best first."""

    scores: NDArray[np.float32]
    """[q, k], -inf where there is none."""
    rows: Ints
    """[q, k], -1 where there is none."""
    held: Ints
    distinct: bool

    @classmethod
    def none(cls, queries: int, k: int, *, distinct: bool = False) -> Best:
        return cls(
            np.full((queries, k), -np.inf, np.float32),
            np.full((queries, k), -1, np.int64),
            np.zeros((queries, k), np.int64),
            distinct,
        )

    def part(self, low: int, high: int) -> Best:
        """Some of the queries; what is kept for them is kept here too."""
        chosen = slice(low, high)
        return Best(self.scores[chosen], self.rows[chosen], self.held[chosen], self.distinct)

    def take(self, other: Best, places: Ints) -> None:
        """Put in what another one has found for some of the queries."""
        self.scores[places], self.rows[places] = other.scores, other.rows
        self.held[places] = other.held


def margin(dimensions: int, parts: int) -> float:
    """How far a float32 product of unit vectors may be off, in whatever order it is summed."""
    return parts * 1.01 * (dimensions + 8) * 2.0**-24


def offer(
    threads: Threads,
    best: Best,
    near: list[Vectors],
    asked: list[Vectors],
    pool: list[Vectors],
    first: int,
    skip: Mask,
    holds: Ints,
) -> None:
    """Let the rows of a block, from number ``first`` on, compete.

    ``near`` holds the products of ``asked`` and ``pool``; with two of each, their product counts,
    negative ones as 0. Rows marked in ``skip`` do not take part.
    """
    two = len(near) > 1
    others = (near[1], asked[1], pool[1]) if two else (NO_VECTORS, asked[0], pool[0])
    tolerance = margin(asked[0].shape[1], len(near))

    def work(low: int, high: int) -> None:
        _offer(
            low, high, near[0], others[0], asked[0], others[1], pool[0], others[2], first, skip,
            holds, best.distinct, tolerance, best.scores, best.rows, best.held,
        )  # fmt: skip

    threads.run(work, len(near[0]))


def rescore(
    threads: Threads,
    best: Best,
    wanted: Ints,
    asked: Vectors,
    pool: Vectors,
    skip: Mask,
    holds: Ints,
) -> None:
    """Let the rows in ``wanted`` [q, n] compete, -1 for none; ``pool`` holds all vectors."""

    def work(low: int, high: int) -> None:
        _rescore(
            low, high, wanted, asked, pool, skip, holds, best.distinct, best.scores, best.rows,
            best.held,
        )  # fmt: skip

    threads.run(work, len(wanted))


def skip_blank(vectors: Vectors, skip: Mask) -> None:
    """Mark the rows that have no vector: all zeros."""
    _skip_blank(vectors, skip)
