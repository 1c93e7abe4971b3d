"""A batch of items as arrays of numbers: texts are interned, references are ragged.

Selecting items and pairing replies with single references are index operations. Batches that are
derived from one another share the table of texts, and with it all tokenizations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.item_table import ChosenItems, ItemTable
from rejoinder.items import PARROT, RETRIEVED, Item, Reference
from rejoinder.text.tokenizers.tokenizer import starts_of
from rejoinder.text.tokens import TextTable

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

FROM_ITEM, FROM_POOL, FROM_CONTEXT = range(3)
"""Origin of a reference: the item itself, a pool, or the last turn of the context (a parrot)."""
ORIGIN_OF_SOURCE: dict[str | None, int] = {RETRIEVED: FROM_POOL, PARROT: FROM_CONTEXT}


@dataclass(frozen=True)
class Batch:
    """Items side by side; texts are numbers of rows of ``table``."""

    items: Sequence[Item]
    table: TextTable
    reply: Ints
    """[n] the reply of each item."""
    reference: Ints
    """[m] the references of all items, concatenated."""
    first: Ints
    """[n + 1] the references of item i are ``first[i]:first[i + 1]``."""
    weight: Floats
    """[m] the weight of each reference, 1 by default."""
    context_similarity: Floats
    """[m] similarity of the context of a retrieved reference to that of the item; else 1."""
    origin: NDArray[np.int8]
    """[m] ``FROM_ITEM``, ``FROM_POOL`` or ``FROM_CONTEXT``."""

    @classmethod
    def of(cls, items: Sequence[Item]) -> Batch:
        columns = ItemTable.of(items)
        references = list(chain.from_iterable(columns.references))
        first = starts_of(map(len, columns.references))
        near = weight = np.ones(len(references))
        origin = np.full(len(references), FROM_ITEM, np.int8)
        texts: list[str] = references  # type: ignore[assignment]  # until one is no text
        if not all(type(each) is str for each in references):
            several = [Reference(each) if isinstance(each, str) else each for each in references]
            texts = [r.text for r in several]
            weight = _or_one([r.weight for r in several])
            near = _or_one([r.score if r.source == RETRIEVED else None for r in several])
            origin = np.array([ORIGIN_OF_SOURCE.get(r.source, FROM_ITEM) for r in several], np.int8)
        number: defaultdict[str, int] = defaultdict(count().__next__)
        reply, reference = _numbers(number, columns.responses), _numbers(number, texts)
        return cls(items, TextTable(list(number)), reply, reference, first, weight, near, origin)

    @classmethod
    def from_arrays(
        cls,
        items: Sequence[Item],
        table: TextTable,
        reply: Ints,
        reference: Ints,
        first: Ints,
        weight: Floats | None = None,
    ) -> Batch:
        """Return a batch of texts of a table as replies and as references of the items."""
        ones = np.ones(len(reference))
        weight = ones if weight is None else weight
        origin = np.full(len(reference), FROM_ITEM, np.int8)
        return cls(items, table, reply, reference, first, weight, ones, origin)

    def __len__(self) -> int:
        return len(self.reply)

    @property
    def counts(self) -> Ints:
        """[n] number of references of each item."""
        return np.diff(self.first)

    @property
    def max_weight(self) -> Floats:
        """[n] the highest weight of each item's references; -inf without references."""
        highest = np.full(len(self), -np.inf)
        np.maximum.at(highest, np.repeat(np.arange(len(self)), self.counts), self.weight)
        return highest

    def take(self, keep: Ints) -> Batch:
        """Return the batch of the items numbered ``keep``."""
        counts = self.counts[keep]
        first = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        chosen = np.repeat(self.first[keep] - first[:-1], counts) + np.arange(first[-1])
        return Batch(
            ChosenItems.of(self.items, keep.tolist()),
            self.table,
            self.reply[keep],
            self.reference[chosen],
            first,
            self.weight[chosen],
            self.context_similarity[chosen],
            self.origin[chosen],
        )

    def without_blank_references(self) -> Batch:
        """Return the same items without references that are only white space."""
        return self.keep_references(~self.table.blank[self.reference])

    def with_positive_references(self) -> Batch:
        """Return the same items without references with a weight of 0 or less: those are examples
        of bad replies, which a metric that reads no weights would take for good ones."""
        return self.keep_references(self.weight > 0)

    def keep_references(self, good: NDArray[np.bool_]) -> Batch:
        """Return the same items with the references for which ``good`` [m] is true."""
        if good.all():
            return self
        kept = np.concatenate([np.zeros(1, np.int64), np.cumsum(good)])[self.first]
        return Batch(
            self.items,
            self.table,
            self.reply,
            self.reference[good],
            kept,
            self.weight[good],
            self.context_similarity[good],
            self.origin[good],
        )

    def pairs(self) -> Batch:
        """Return one item for each reference, with this reference only."""
        owner = np.repeat(np.arange(len(self)), self.counts)
        return Batch(
            ChosenItems.of(self.items, owner.tolist()),
            self.table,
            self.reply[owner],
            self.reference,
            np.arange(len(owner) + 1, dtype=np.int64),
            self.weight,
            self.context_similarity,
            self.origin,
        )

    @cached_property
    def with_last_turn_as_reference(self) -> Batch:
        """The same items with the last turn of their context as the only reference; without one if
        it is blank, or if there is no context."""
        return Batch.of([_with_last_turn(item) for item in self.items]).without_blank_references()

    def slices(self, max_characters: int) -> Iterator[Batch]:
        """Split the batch into slices of whole items with at most about this many characters, so
        that what is computed for a slice stays small."""
        length = self.table.lengths
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(length[self.reference])])
        total = np.cumsum(length[self.reply] + np.diff(ends[self.first]))
        begin = 0
        while begin < len(self):
            before = total[begin - 1] if begin else 0
            end = max(int(np.searchsorted(total, before + max_characters, "right")), begin + 1)
            yield self if (begin, end) == (0, len(self)) else self.take(np.arange(begin, end))
            begin = end


def _with_last_turn(item: Item) -> Item:
    turns = [Reference(turn) for turn in item.context[-1:]]
    return msgspec.structs.replace(item, references=turns)


def _numbers(number: Mapping[str, int], texts: Sequence[str]) -> Ints:
    return np.fromiter(map(number.__getitem__, texts), np.int64, len(texts))


def _or_one(values: Sequence[float | None]) -> Floats:
    return np.array([1.0 if value is None else value for value in values], dtype=np.float64)
