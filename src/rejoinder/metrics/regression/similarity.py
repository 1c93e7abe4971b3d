"""The similarity of the texts of a context to its references, by any item metric.

A text is the reply, a reference its only reference, with the weight 1: how good a reference is does
not matter for the similarity.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rejoinder.metrics.batch import Batch, Floats, Ints
from rejoinder.metrics.embedding.sentence import SentenceCosine
from rejoinder.metrics.metric import ItemMetric
from rejoinder.metrics.reasons import Reasons
from rejoinder.metrics.scoring_context import score_batch

MAX_PAIRS = 1 << 19
"""Number of pairs that are scored at a time."""

Flags = NDArray[np.bool_]
Block = tuple[Ints, Ints]
"""Texts and references of one context, by their numbers in the table."""
Similarities = tuple[Floats, Reasons | None]
"""[t, r] similarities, and the reasons where there are none (None if there are all)."""


def similarities(metric: ItemMetric, batch: Batch, blocks: Sequence[Block]) -> list[Similarities]:
    """Return for each block the similarity of each of its texts to each of its references."""
    if not blocks:
        return []
    if isinstance(metric, SentenceCosine):
        return _cosines(metric, batch, blocks)
    values, reasons = _scores(metric, batch, blocks)
    ends = np.cumsum([0, *(len(texts) * len(references) for texts, references in blocks)])
    results: list[Similarities] = []
    for which, (texts, references) in enumerate(blocks):
        part = slice(ends[which], ends[which + 1])
        shape = len(texts), len(references)
        why = None if reasons is None else reasons[part].reshape(shape)
        if why is not None and unset(why).all():
            why = None
        results.append((values[part].reshape(shape), why))
    return results


def _scores(
    metric: ItemMetric, batch: Batch, blocks: Sequence[Block]
) -> tuple[Floats, Reasons | None]:
    """Return the scores of all pairs of all blocks; large ones are scored piece by piece."""
    reply = np.concatenate([np.repeat(texts, len(references)) for texts, references in blocks])
    reference = np.concatenate([np.tile(references, len(texts)) for texts, references in blocks])
    values: list[Floats] = []
    reasons: list[Reasons] = []
    for begin in range(0, len(reply), MAX_PAIRS):
        part = slice(begin, begin + MAX_PAIRS)
        scored = score_batch(metric, _pairs(batch, reply[part], reference[part]))
        values.append(scored.values)
        reasons.append(scored.reasons)
    every = np.concatenate([np.full(0, None, object), *reasons])
    return np.concatenate([np.zeros(0), *values]), None if unset(every).all() else every


def _pairs(batch: Batch, reply: Ints, reference: Ints) -> Batch:
    """Return a batch with one reference for each reply."""
    many = len(reply)
    first = np.arange(many + 1, dtype=np.int64)
    return Batch.from_arrays([batch.items[0]] * many, batch.table, reply, reference, first)


def _cosines(metric: SentenceCosine, batch: Batch, blocks: Sequence[Block]) -> list[Similarities]:
    """The same for sentence vectors: they are computed once, and a product gives all cosines."""
    numbers = np.unique(np.concatenate([numbers for block in blocks for numbers in block]))
    texts = [batch.table.texts[number].strip() for number in numbers.tolist()]
    vectors = metric.encoder.sentences(texts, layer=metric.layer, pooling=metric.pool)
    results: list[Similarities] = []
    for every, references in blocks:
        left = vectors[np.searchsorted(numbers, every)].astype(np.float64)
        right = vectors[np.searchsorted(numbers, references)].astype(np.float64)
        cosine = left @ right.T
        cosine[batch.table.blank[every]] = 0.0
        results.append((cosine, None))
    return results


def unset(reasons: Reasons) -> Flags:
    """Return where there is no reason."""
    return np.array([reason is None for reason in reasons.flat], bool).reshape(reasons.shape)
