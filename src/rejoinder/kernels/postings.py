"""Scores of sparse retrieval (BM25, TF-IDF) from an inverted index.

A segment of the pool has, for each of its words, the rows that contain it and how often. The
scores of one query over one segment fit into the processor's cache; the best of them are kept by
:mod:`rejoinder.kernels.topk`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels.compiled import compiled
from rejoinder.kernels.topk import Best, Ints, Mask, Threads, insert

Floats = NDArray[np.float64]
Small = NDArray[np.int32]


class Part(NamedTuple):
    """The queries and a segment of the index for one key (utterance or response)."""

    query_starts: Ints
    """Query q has the words from ``query_starts[q]`` to ``query_starts[q + 1]``."""
    places: Ints
    """The index of each query word in ``starts``; -1 if the segment does not have it."""
    weights: Floats
    starts: Ints
    rows: Small
    counts: Small
    norms: Floats
    """For each row, the length normalisation of its counts."""


@compiled
def _sum_weights(q, part, saturate, sums):
    sums[:] = 0.0
    for i in range(part.query_starts[q], part.query_starts[q + 1]):
        place, weight = part.places[i], part.weights[i]
        if place < 0:
            continue
        for j in range(part.starts[place], part.starts[place + 1]):
            row, count = part.rows[j], np.float64(part.counts[j])
            norm = part.norms[row]
            if saturate:
                sums[row] += weight * (count / (count + norm))
            else:
                sums[row] += weight * (count / norm)


@compiled
def _offer(
    low, high, part, other, both, saturate, first, skip, groups, distinct, scores, rows, kept
):
    size, last = part.norms.size, scores.shape[1] - 1
    sums, factors = np.empty(size), np.empty(size if both else 0)
    for q in range(low, high):
        _sum_weights(q, part, saturate, sums)
        if both:
            _sum_weights(q, other, saturate, factors)
            for j in range(size):
                sums[j] *= factors[j]
        for j in range(size):
            if sums[j] > 0 and not skip[j]:
                score = np.float32(sums[j])
                if score >= scores[q, last] and score > 0:
                    group = groups[j] if distinct else 0
                    insert(scores[q], rows[q], kept[q], score, first + j, group, distinct)


def offer(
    threads: Threads,
    best: Best,
    parts: list[Part],
    *,
    saturate: bool,
    first: int,
    skip: Mask,
    groups: Ints,
) -> None:
    """Update the best rows with those of a segment, scored by a sum or the product of two sums.

    Each shared word adds its weight times count / (count + norm) with ``saturate`` (BM25), else
    times count / norm (TF-IDF).
    """
    other = parts[-1]

    def work(low: int, high: int) -> None:
        _offer(
            low, high, parts[0], other, len(parts) > 1, saturate, first, skip, groups,
            best.distinct, best.scores, best.rows, best.groups,
        )  # fmt: skip

    threads.run(work, len(best.rows))
