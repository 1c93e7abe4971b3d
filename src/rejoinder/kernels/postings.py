"""Sums over the words that a query and a row share, from lists of the rows of each word.

A segment of the pool has, for each of its words, the rows it stands in and how often. The sums
of one query over one segment fit the processor's cache; the best of them go to
:mod:`rejoinder.kernels.topk`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels.compiled import compiled
from rejoinder.kernels.topk import Best, Ints, Mask, Threads, keep

Floats = NDArray[np.float64]
Small = NDArray[np.int32]


class Part(NamedTuple):
    """One key (utterance or response): what queries ask, and what a segment has."""

    asked_starts: Ints
    """Query q asks for the words from asked_starts[q] to asked_starts[q + 1]."""
    places: Ints
    """Where each asked word stands in ``starts``; -1 where the segment does not have it."""
    weights: Floats
    starts: Ints
    rows: Small
    counts: Small
    norms: Floats
    """For each row what damps its counts."""


@compiled
def _add_up(q, part, saturate, sums):
    sums[:] = 0.0
    for i in range(part.asked_starts[q], part.asked_starts[q + 1]):
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
    low, high, part, other, both, saturate, first, skip, holds, distinct, scores, rows, held
):
    size, last = part.norms.size, scores.shape[1] - 1
    sums, others = np.empty(size), np.empty(size if both else 0)
    for q in range(low, high):
        _add_up(q, part, saturate, sums)
        if both:
            _add_up(q, other, saturate, others)
            for j in range(size):
                sums[j] *= others[j]
        for j in range(size):
            if sums[j] > 0 and not skip[j]:
                score = np.float32(sums[j])
                if score >= scores[q, last] and score > 0:
                    number = holds[j] if distinct else 0
                    keep(scores[q], rows[q], held[q], score, first + j, number, distinct)


def offer(
    threads: Threads,
    best: Best,
    parts: list[Part],
    *,
    saturate: bool,
    first: int,
    skip: Mask,
    holds: Ints,
) -> None:
    """Let the rows of a segment compete by their sum, or by the product of two sums.

    Each shared word adds its weight times count / (count + norm) if counts saturate (BM25), else
    times count / norm (TF-IDF).
    """
    other = parts[-1]

    def work(low: int, high: int) -> None:
        _offer(
            low, high, parts[0], other, len(parts) > 1, saturate, first, skip, holds,
            best.distinct, best.scores, best.rows, best.held,
        )  # fmt: skip

    threads.run(work, len(best.rows))
