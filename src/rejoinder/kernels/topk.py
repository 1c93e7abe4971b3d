"""The k most similar rows for each query, updated block by block.

The similarities of a block are one matrix product in float32, whose last digits depend on the
size of the block. So they only preselect: the similarity of a row within ``margin`` of the k-th
best is computed again in float64, in a fixed order, and rounded to float32. The result is the
same as if every row was computed alone, whatever the blocks. Of equally similar rows the lower
one is better; rows of similarity 0 are never returned.

Rows may belong to groups (a hash of the response); with ``distinct``, only the best row of each
group is kept.
"""

from __future__ import annotations

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
"""Similarities that are compared with the limit together: most chunks have none above it."""


@compiled
def _before(score, row, other_score, other_row):
    return score > other_score or (score == other_score and row < other_row)


@compiled
def insert(scores, rows, kept, score, row, group, distinct):
    """Insert a row into the sorted best rows of one query, if it is good enough."""
    place = scores.size - 1
    if distinct:
        for i in range(scores.size):
            if rows[i] >= 0 and kept[i] == group:
                place = i
                break
    if not _before(score, row, scores[place], rows[place]):
        return
    while place > 0 and _before(score, row, scores[place - 1], rows[place - 1]):
        scores[place], rows[place] = scores[place - 1], rows[place - 1]
        kept[place] = kept[place - 1]
        place -= 1
    scores[place], rows[place], kept[place] = score, row, group


@compiled
def _dot(a, b):
    total = 0.0
    for i in range(a.size):
        total += np.float64(a[i]) * np.float64(b[i])
    return total


@compiled
def _offer(
    low, high, near, other_near, queries, other_queries, pool, other_pool, first, skip, groups,
    distinct, margin, scores, rows, kept,
):  # fmt: skip
    width, last, both = near.shape[1], scores.shape[1] - 1, other_near.size > 0
    zero = np.float32(0)
    for q in range(low, high):
        limit = np.float32(scores[q, last] - margin)
        line = near[q]
        other = other_near[q] if both else line
        for begin in range(0, width, CHUNK):
            end = min(begin + CHUNK, width)
            candidates = 0
            if both:
                for j in range(begin, end):
                    candidates += max(line[j], zero) * max(other[j], zero) >= limit
            else:
                for j in range(begin, end):
                    candidates += line[j] >= limit
            if candidates == 0:
                continue
            for j in range(begin, end):
                value = max(line[j], zero) * max(other[j], zero) if both else line[j]
                if value < limit or skip[j]:
                    continue
                exact = _dot(queries[q], pool[j])
                if both:
                    exact = max(exact, 0.0) * max(_dot(other_queries[q], other_pool[j]), 0.0)
                score = np.float32(exact)
                if score == 0:
                    continue
                group = groups[j] if distinct else 0
                insert(scores[q], rows[q], kept[q], score, first + j, group, distinct)
                limit = np.float32(scores[q, last] - margin)


@compiled
def _rescore(low, high, candidates, queries, pool, skip, groups, distinct, scores, rows, kept):
    for q in range(low, high):
        for i in range(candidates.shape[1]):
            row = candidates[q, i]
            if row < 0 or (skip.size and skip[row]):
                continue
            score = np.float32(_dot(queries[q], pool[row]))
            if score != 0:
                group = groups[row] if distinct else 0
                insert(scores[q], rows[q], kept[q], score, row, group, distinct)


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


class Threads:
    """Runs compiled loops over slices of the queries in threads; a context manager."""

    def __init__(self) -> None:
        self._count = machine.num_threads()
        self._pool = ThreadPoolExecutor(self._count) if self._count > 1 else None

    def run(self, work: Callable[[int, int], None], count: int) -> None:
        """Call ``work(low, high)`` for slices of 0 … count."""
        if self._pool is None or count < 2:
            work(0, count)
            return
        # more slices than threads: some queries take longer than others
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
    """[q, k] similarities; -inf where there is no row"""
    rows: Ints
    """[q, k] row numbers; -1 where there is no row"""
    groups: Ints
    """[q, k] groups of the rows"""
    distinct: bool
    """Whether only one row of each group is kept."""

    @classmethod
    def empty(cls, queries: int, k: int, *, distinct: bool = False) -> Best:
        """Return a list without any row."""
        return cls(
            np.full((queries, k), -np.inf, np.float32),
            np.full((queries, k), -1, np.int64),
            np.zeros((queries, k), np.int64),
            distinct,
        )

    def slice(self, low: int, high: int) -> Best:
        """Return a view of some of the queries; updates of it update this object, too."""
        return Best(
            self.scores[low:high], self.rows[low:high], self.groups[low:high], self.distinct
        )

    def replace(self, other: Best, queries: Ints) -> None:
        """Replace the rows of some of the queries by those of another object."""
        self.scores[queries], self.rows[queries] = other.scores, other.rows
        self.groups[queries] = other.groups


def margin(dimensions: int, parts: int) -> float:
    """Return the maximum error of a float32 product of unit vectors, in any order of summation."""
    return parts * 1.01 * (dimensions + 8) * 2.0**-24


def offer(
    threads: Threads,
    best: Best,
    near: list[Vectors],
    queries: list[Vectors],
    pool: list[Vectors],
    first: int,
    skip: Mask,
    groups: Ints,
) -> None:
    """Update the best rows with those of a block, whose first row has the number ``first``.

    ``near`` are the products of ``queries`` and ``pool``; with two of each, the similarity is
    their product, negative ones as 0. Rows marked in ``skip`` are ignored.
    """
    two = len(near) > 1
    other = (near[1], queries[1], pool[1]) if two else (NO_VECTORS, queries[0], pool[0])
    tolerance = margin(queries[0].shape[1], len(near))

    def work(low: int, high: int) -> None:
        _offer(
            low, high, near[0], other[0], queries[0], other[1], pool[0], other[2], first, skip,
            groups, best.distinct, tolerance, best.scores, best.rows, best.groups,
        )  # fmt: skip

    threads.run(work, len(near[0]))


def rescore(
    threads: Threads,
    best: Best,
    candidates: Ints,
    queries: Vectors,
    pool: Vectors,
    skip: Mask,
    groups: Ints,
) -> None:
    """Update the best rows with ``candidates`` [q, n], -1 for none; ``pool`` has all vectors."""

    def work(low: int, high: int) -> None:
        _rescore(
            low, high, candidates, queries, pool, skip, groups, best.distinct, best.scores,
            best.rows, best.groups,
        )  # fmt: skip

    threads.run(work, len(candidates))


def skip_blank(vectors: Vectors, skip: Mask) -> None:
    """Mark the rows without a vector, which are all zeros."""
    _skip_blank(vectors, skip)
