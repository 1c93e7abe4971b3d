"""A batch, context by context: replies, references, and how similar they all are.

The similarities of all texts of a context are computed once, whatever number of its replies are
judged and whichever references each of them may see.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rejoinder.metrics.batch import Batch, Floats, Ints
from rejoinder.metrics.metric import ItemMetric, Reasons
from rejoinder.metrics.regression.similarity import similarities, unset

MOST = 1 << 19
"""About how many pairs of texts are compared at a time."""


@dataclass(frozen=True)
class Layout:
    """The texts of one context. Its references come first among ``texts``."""

    items: Ints
    """[n] where its items stand in the batch."""
    texts: Ints
    """[t] the numbers of its distinct texts."""
    references: int
    """[r] how many of them are references."""
    reply: Ints
    """[n] where the reply of each item stands in ``texts``."""
    column: Ints
    """[m] where the references of all items stand there, end to end."""
    first: Ints
    """[n + 1] item i owns references ``first[i]:first[i + 1]``."""
    weight: Floats
    """[m] the weight of each; NaN where none was given."""
    same: Ints
    """[t] equal for texts that differ in white space only."""

    def seen(self, place: int, loo: bool) -> Ints:
        """Which of its references the item may be compared with (positions in ``column``): all,
        or all but the reply itself."""
        own: Ints = np.arange(self.first[place], self.first[place + 1])
        other = self.same[self.column[own]] != self.same[self.reply[place]]
        return own[other] if loo else own


@dataclass(frozen=True)
class Context(Layout):
    """One context with the similarities of its texts."""

    similarity: Floats
    """[d, t, r] how similar, by each metric, each text is to each reference; NaN if unknown."""
    why: Reasons | None
    """[t, r] why they can't be compared; None where all can."""

    @cached_property
    def filled(self) -> Floats:
        """The similarities, with 0 for unknown ones, which no regression reads."""
        return self.similarity if self.why is None else np.nan_to_num(self.similarity)

    @cached_property
    def most(self) -> Ints:
        """[r] how often an item has each reference, at the most; nearly always 1."""
        owner = np.repeat(np.arange(len(self.items)), np.diff(self.first))
        numbers, counts = np.unique(owner * self.references + self.column, return_counts=True)
        found = np.zeros(self.references, np.int64)
        np.maximum.at(found, numbers % self.references, counts)
        return found

    @cached_property
    def apart(self) -> Floats:
        """[t, r] the squared distance of texts and references in their similarities to all
        references, each taken ``most`` times."""
        features = (self.filled * np.sqrt(self.most)).transpose(1, 0, 2)
        flat = features.reshape(len(self.texts), -1)
        square = np.einsum("tf,tf->t", flat, flat)
        product = flat @ flat[: self.references].T
        return np.asarray(square[:, None] + square[None, : self.references] - 2 * product)

    def comparable(self, place: int, seen: Ints) -> Ints:
        """Those of the references ``seen`` that the reply, and they themselves, can be compared
        with."""
        if self.why is None:
            return seen
        column = self.column[seen]
        known = ~np.isnan(self.similarity[:, self.reply[place], column]).any(axis=0)
        known &= ~np.isnan(self.similarity[:, column, column]).any(axis=0)
        return seen[known]

    def incomparable(self, columns: Ints) -> object:
        """Why some of these references can't be compared with one another, or None."""
        if self.why is None:
            return None
        why = self.why[np.ix_(columns, columns)]
        return next((reason for reason in why.flat if reason is not None), None)

    def reason(self, place: int, seen: Ints) -> object:
        """Why a reply can't be compared with its references."""
        assert self.why is not None
        column = self.column[seen]
        every = [*self.why[self.reply[place], column], *self.why[column, column]]
        return next(reason for reason in every if reason is not None)


def contexts(batch: Batch, weight: Floats, metrics: Sequence[ItemMetric]) -> Iterator[Context]:
    """The contexts of a batch that has no blank references, in the order of their first items;
    ``weight`` [m] is what is known of its references."""
    waiting: list[Layout] = []
    pairs = 0
    for layout in layouts(batch, weight):
        waiting.append(layout)
        pairs += len(layout.texts) * layout.references
        if pairs >= MOST:
            yield from _compared(batch, waiting, metrics)
            waiting, pairs = [], 0
    yield from _compared(batch, waiting, metrics)


def layouts(batch: Batch, weight: Floats) -> Iterator[Layout]:
    """Items by context; those without references have none to be compared with."""
    groups: dict[str, list[int]] = {}
    for number in np.flatnonzero(batch.counts).tolist():
        groups.setdefault(batch.items[number].group, []).append(number)
    same = _same(batch)
    place = np.zeros(len(batch.table.texts), np.int64)
    for numbers in groups.values():
        items = np.array(numbers, np.int64)
        some = batch.take(items)
        known = np.unique(some.reference)
        texts = np.concatenate([known, np.setdiff1d(some.reply, known)])
        place[texts] = np.arange(len(texts))
        own = np.concatenate([np.arange(batch.first[i], batch.first[i + 1]) for i in numbers])
        yield Layout(
            items,
            texts,
            len(known),
            place[some.reply],
            place[some.reference],
            some.first,
            weight[own],
            same[texts],
        )


def given_weights(batch: Batch) -> Floats:
    """[m] the weights of references as they were given; NaN where they were not. A batch without
    blank references may have come from items that have some."""
    given = [r.weight for item in batch.items for r in item.references]
    if len(given) > len(batch.reference):
        every = (r for item in batch.items for r in item.references)
        given = [r.weight for r in every if r.text and not r.text.isspace()]
    weight = np.array(given, np.float64)  # None becomes NaN
    assert len(weight) == len(batch.reference)
    return weight


def _same(batch: Batch) -> Ints:
    """[texts of the table] numbers that are equal where texts differ in white space only."""
    number: dict[str, int] = {}
    plain = (" ".join(text.split()) for text in batch.table.texts)
    every = [number.setdefault(text, len(number)) for text in plain]
    return np.array(every, np.int64)


def _compared(
    batch: Batch, waiting: Sequence[Layout], metrics: Sequence[ItemMetric]
) -> Iterator[Context]:
    blocks = [(layout.texts, layout.texts[: layout.references]) for layout in waiting]
    found = [similarities(metric, batch, blocks) for metric in metrics]
    for which, layout in enumerate(waiting):
        values = np.stack([by_metric[which][0] for by_metric in found])
        reasons = [by_metric[which][1] for by_metric in found]
        yield Context(**vars(layout), similarity=values, why=_first(reasons))


def _first(reasons: Sequence[Reasons | None]) -> Reasons | None:
    """Of several metrics' reasons the first."""
    known = [found for found in reasons if found is not None]
    if not known:
        return None
    merged = known[0].copy()
    for other in known[1:]:
        merged = np.where(unset(merged), other, merged)
    return merged
