"""How similar every text of a context is to every reference of it, by any item metric.

A text stands as the reply, a reference as its only reference, with the weight 1: how good a
reference is, is no matter of similarity.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rejoinder.metrics.batch import Batch, Floats, Ints
from rejoinder.metrics.embedding.sentence import SentenceCosine
from rejoinder.metrics.metric import ItemMetric, Reasons
from rejoinder.metrics.scoring_context import score_batch

Flags = NDArray[np.bool_]
Block = tuple[Ints, Ints]
"""Texts and references of one context, by their numbers in the table."""
Found = tuple[Floats, Reasons | None]
"""[t, r] similarities, and the reasons where there are none (None if there are all)."""


def similarities(metric: ItemMetric, batch: Batch, blocks: Sequence[Block]) -> list[Found]:
    """For each block the similarity of each of its texts to each of its references."""
    if not blocks:
        return []
    if isinstance(metric, SentenceCosine):
        return _cosines(metric, batch, blocks)
    pairs = _pairs(batch, blocks)
    scored = score_batch(metric, pairs)
    reasons = None if scored.scored.all() else scored.reasons
    ends = np.cumsum([0, *(len(texts) * len(references) for texts, references in blocks)])
    found: list[Found] = []
    for which, (texts, references) in enumerate(blocks):
        part = slice(ends[which], ends[which + 1])
        shape = len(texts), len(references)
        why = None if reasons is None else reasons[part].reshape(shape)
        if why is not None and unset(why).all():
            why = None
        found.append((scored.values[part].reshape(shape), why))
    return found


def _pairs(batch: Batch, blocks: Sequence[Block]) -> Batch:
    """Every text of a block with every reference of it."""
    reply = np.concatenate([np.repeat(texts, len(known)) for texts, known in blocks])
    reference = np.concatenate([np.tile(known, len(texts)) for texts, known in blocks])
    many = len(reply)
    first = np.arange(many + 1, dtype=np.int64)
    return Batch.from_arrays([batch.items[0]] * many, batch.table, reply, reference, first)


def _cosines(metric: SentenceCosine, batch: Batch, blocks: Sequence[Block]) -> list[Found]:
    """The same for vectors of texts: those are made once, and a product gives all cosines."""
    numbers = np.unique(np.concatenate([texts for texts, _ in blocks]))
    texts = [batch.table.texts[number].strip() for number in numbers.tolist()]
    vectors = metric.encoder.sentences(texts, layer=metric.layer, pooling=metric.pool)
    found: list[Found] = []
    for every, known in blocks:
        left = vectors[np.searchsorted(numbers, every)].astype(np.float64)
        right = vectors[np.searchsorted(numbers, known)].astype(np.float64)
        cosine = left @ right.T
        cosine[batch.table.blank[every]] = 0.0
        found.append((cosine, None))
    return found


def unset(reasons: Reasons) -> Flags:
    """Where there is no reason."""
    return np.array([reason is None for reason in reasons.flat], bool).reshape(reasons.shape)
