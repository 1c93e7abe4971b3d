"""A batch, context by context: replies, references, and the similarities between them.

The similarities of the texts of a context are computed once, whatever the number of its replies and
whichever references each of them may be compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rejoinder.metrics.batch import Batch, Floats, Ints
from rejoinder.metrics.metric import ItemMetric
from rejoinder.metrics.reasons import Reasons
from rejoinder.metrics.regression.similarity import similarities, unset

MAX_PAIRS = 1 << 19
"""About how many pairs of texts of small contexts are compared at a time."""


@dataclass(frozen=True)
class Layout:
    """The texts of one context: its replies, and before them its references, unless only replies
    are compared with references."""

    items: Ints
    """[n] the numbers of its items in the batch."""
    texts: Ints
    """[t] the numbers of its distinct texts in the table."""
    reference_texts: Ints
    """[r] the numbers of its distinct references in the table."""
    reply: Ints
    """[n] the position of each item's reply in ``texts``."""
    column: Ints
    """[m] the positions of the references of all items in ``reference_texts``, concatenated."""
    first: Ints
    """[n + 1] the references of item i are ``first[i]:first[i + 1]``."""
    weight: Floats
    """[m] the weight of each reference; NaN if it has none."""
    same: Ints
    """[t] equal for texts that differ in white space only."""
    same_reference: Ints
    """[r] the same for references."""
    replies_only: bool
    """``texts`` are the replies only."""

    @property
    def references(self) -> int:
        """[r] number of distinct references."""
        return len(self.reference_texts)

    def allowed_references(self, place: int, loo: bool) -> Ints:
        """Return which references the item may be compared with (positions in ``column``): all,
        or all but the reply itself."""
        own: Ints = np.arange(self.first[place], self.first[place + 1])
        other = self.same_reference[self.column[own]] != self.same[self.reply[place]]
        return own[other] if loo else own


@dataclass(frozen=True)
class Context(Layout):
    """One context with the similarities of its texts."""

    similarity: Floats
    """[d, t, r] the similarity of each text to each reference by each metric; NaN if unknown."""
    why: Reasons | None
    """[t, r] why two texts cannot be compared; None if all can."""

    @cached_property
    def filled(self) -> Floats:
        """The similarities with 0 for unknown ones, which no regression reads."""
        return self.similarity if self.why is None else np.nan_to_num(self.similarity)

    @cached_property
    def multiplicity(self) -> Ints:
        """[r] the highest number of times that an item has each reference; nearly always 1."""
        owner = np.repeat(np.arange(len(self.items)), np.diff(self.first))
        numbers, counts = np.unique(owner * self.references + self.column, return_counts=True)
        highest = np.zeros(self.references, np.int64)
        np.maximum.at(highest, numbers % self.references, counts)
        return highest

    @cached_property
    def squared_distances(self) -> Floats:
        """[t, r] the squared distance of texts and references in their similarities to all
        references, each repeated by its multiplicity."""
        features = (self.filled * np.sqrt(self.multiplicity)).transpose(1, 0, 2)
        flat = features.reshape(len(self.texts), -1)
        square = np.einsum("tf,tf->t", flat, flat)
        product = flat @ flat[: self.references].T
        return np.asarray(square[:, None] + square[None, : self.references] - 2 * product)

    def comparable(self, place: int, compared: Ints) -> Ints:
        """Return those of the references ``compared`` whose similarity to the reply is not NaN."""
        if self.why is None:
            return compared
        column = self.column[compared]
        comparable = ~np.isnan(self.similarity[:, self.reply[place], column]).any(axis=0)
        if not self.replies_only:
            comparable &= ~np.isnan(self.similarity[:, column, column]).any(axis=0)
        return compared[comparable]

    def incomparable(self, columns: Ints) -> object:
        """Return why some of these references cannot be compared with one another, or None."""
        if self.why is None:
            return None
        why = self.why[np.ix_(columns, columns)]
        return next((reason for reason in why.flat if reason is not None), None)

    def reason(self, place: int, compared: Ints) -> object:
        """Return why a reply cannot be compared with its references."""
        assert self.why is not None
        column = self.column[compared]
        every = [*self.why[self.reply[place], column]]
        if not self.replies_only:
            every += [*self.why[column, column]]
        return next(reason for reason in every if reason is not None)


def contexts(
    batch: Batch,
    weight: Floats,
    metrics: Sequence[ItemMetric],
    *,
    replies_only: bool = False,
    max_references: int | None = None,
    too_large: Callable[[Layout], None] | None = None,
) -> Iterator[Context]:
    """Yield the contexts of a batch without blank references, in the order of their first items.

    ``weight`` [m] has the weights of its references. ``replies_only`` compares only replies
    with references, not references with one another. ``too_large`` is called with contexts that
    have more than ``max_references``, which are left out.
    """
    waiting: list[Layout] = []
    pairs = 0
    for layout in layouts(batch, weight, replies_only):
        if max_references is not None and layout.references > max_references:
            if too_large is not None:
                too_large(layout)
            continue
        waiting.append(layout)
        pairs += len(layout.texts) * layout.references
        if pairs >= MAX_PAIRS:
            yield from _compared(batch, waiting, metrics)
            waiting, pairs = [], 0
    yield from _compared(batch, waiting, metrics)


def layouts(batch: Batch, weight: Floats, replies_only: bool) -> Iterator[Layout]:
    """Group items by context; those without references are left out."""
    groups: dict[str, list[int]] = {}
    for number in np.flatnonzero(batch.counts).tolist():
        groups.setdefault(batch.items[number].group, []).append(number)
    same = _same(batch)
    place = np.zeros(len(batch.table.texts), np.int64)
    for numbers in groups.values():
        items = np.array(numbers, np.int64)
        some = batch.take(items)
        references = np.unique(some.reference)
        place[references] = np.arange(len(references))
        column = place[some.reference]
        if replies_only:
            texts = np.unique(some.reply)
        else:
            texts = np.concatenate([references, np.setdiff1d(some.reply, references)])
        place[texts] = np.arange(len(texts))
        own = np.concatenate([np.arange(batch.first[i], batch.first[i + 1]) for i in numbers])
        yield Layout(
            items=items,
            texts=texts,
            reference_texts=references,
            reply=place[some.reply],
            column=column,
            first=some.first,
            weight=weight[own],
            same=same[texts],
            same_reference=same[references],
            replies_only=replies_only,
        )


def item_weights(batch: Batch) -> Floats:
    """Return [m] the weights of references in the items; NaN for those without a weight. The items
    may have blank references that the batch has not."""
    weights = [r.weight for item in batch.items for r in item.references]
    if len(weights) > len(batch.reference):
        every = (r for item in batch.items for r in item.references)
        weights = [r.weight for r in every if r.text and not r.text.isspace()]
    weight = np.array(weights, np.float64)  # None becomes NaN
    assert len(weight) == len(batch.reference)
    return weight


def _same(batch: Batch) -> Ints:
    """Return [texts of the table] numbers that are equal for texts that differ in white space."""
    number: dict[str, int] = {}
    plain = (" ".join(text.split()) for text in batch.table.texts)
    every = [number.setdefault(text, len(number)) for text in plain]
    return np.array(every, np.int64)


def _compared(
    batch: Batch, waiting: Sequence[Layout], metrics: Sequence[ItemMetric]
) -> Iterator[Context]:
    blocks = [(layout.texts, layout.reference_texts) for layout in waiting]
    compared = [similarities(metric, batch, blocks) for metric in metrics]
    for which, layout in enumerate(waiting):
        values = np.stack([by_metric[which][0] for by_metric in compared])
        reasons = [by_metric[which][1] for by_metric in compared]
        yield Context(**vars(layout), similarity=values, why=_first(reasons))


def _first(reasons: Sequence[Reasons | None]) -> Reasons | None:
    """Return the first of several metrics' reasons for each pair."""
    present = [each for each in reasons if each is not None]
    if not present:
        return None
    merged = present[0].copy()
    for other in present[1:]:
        merged = np.where(unset(merged), other, merged)
    return merged
