"""A batch of items as columns of numbers: texts are interned, references are ragged.

Selecting items and pairing replies with single references are index operations; the text
table, and with it every tokenization, is shared by all batches derived from one another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.items import PARROT, RETRIEVED, Item, Reference
from rejoinder.text.tokens import TextTable

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

GIVEN, FOUND, REPEATED = range(3)
"""A reference came with its item, was retrieved for it, or repeats its last turn (a parrot's)."""
ORIGINS: dict[str | None, int] = {RETRIEVED: FOUND, PARROT: REPEATED}


@dataclass(frozen=True)
class Batch:
    """Items side by side; text numbers point into ``table``."""

    items: Sequence[Item]
    table: TextTable
    reply: Ints
    """[n] the text of each reply."""
    reference: Ints
    """[m] the texts of all references, end to end."""
    first: Ints
    """[n + 1] item i owns references ``first[i]:first[i + 1]``."""
    weight: Floats
    """[m] the weight of each reference, 1 where none was given."""
    near: Floats
    """[m] how near what a retrieved reference answered is to the context; 1 for all others."""
    origin: NDArray[np.int8]
    """[m] where a reference comes from: ``GIVEN``, ``FOUND`` or ``REPEATED``."""

    @classmethod
    def of(cls, items: Sequence[Item]) -> Batch:
        number: defaultdict[str, int] = defaultdict(count().__next__)
        references = [r for item in items for r in item.references]
        reply = _numbers(number, [item.response for item in items])
        reference = _numbers(number, [r.text for r in references])
        weight = _or_one([r.weight for r in references])
        near = _or_one([r.score if r.source == RETRIEVED else None for r in references])
        origin = np.array([ORIGINS.get(r.source, GIVEN) for r in references], np.int8)
        first = np.zeros(len(items) + 1, np.int64)
        np.cumsum([len(item.references) for item in items], out=first[1:])
        return cls(items, TextTable(list(number)), reply, reference, first, weight, near, origin)

    @classmethod
    def laid_out(
        cls,
        items: Sequence[Item],
        table: TextTable,
        reply: Ints,
        reference: Ints,
        first: Ints,
        weight: Floats | None = None,
    ) -> Batch:
        """Texts of a table as replies and references that nobody had to look for."""
        ones = np.ones(len(reference))
        weight = ones if weight is None else weight
        given = np.full(len(reference), GIVEN, np.int8)
        return cls(items, table, reply, reference, first, weight, ones, given)

    def __len__(self) -> int:
        return len(self.reply)

    @property
    def counts(self) -> Ints:
        """[n] how many references each item has."""
        return np.diff(self.first)

    @property
    def heaviest(self) -> Floats:
        """[n] the highest weight among each item's references; -inf where there are none."""
        found = np.full(len(self), -np.inf)
        np.maximum.at(found, np.repeat(np.arange(len(self)), self.counts), self.weight)
        return found

    def take(self, keep: Ints) -> Batch:
        """The batch of the items numbered ``keep``."""
        counts = self.counts[keep]
        first = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        chosen = np.repeat(self.first[keep] - first[:-1], counts) + np.arange(first[-1])
        return Batch(
            [self.items[i] for i in keep.tolist()],
            self.table,
            self.reply[keep],
            self.reference[chosen],
            first,
            self.weight[chosen],
            self.near[chosen],
            self.origin[chosen],
        )

    def present(self) -> Batch:
        """The same items without blank references: a text of white space is not there."""
        return self.only(~self.table.blank[self.reference])

    def positive(self) -> Batch:
        """The same items without the references whose weight is not above 0: those are known
        to be no good replies, and a metric that reads no weights must not take them for such."""
        return self.only(self.weight > 0)

    def only(self, good: NDArray[np.bool_]) -> Batch:
        """The same items with the references for which ``good`` [m] is true."""
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
            self.near[good],
            self.origin[good],
        )

    def pairs(self) -> Batch:
        """One item for every reply and reference of it: each has exactly one reference."""
        owner = np.repeat(np.arange(len(self)), self.counts)
        return Batch(
            [self.items[i] for i in owner.tolist()],
            self.table,
            self.reply[owner],
            self.reference,
            np.arange(len(owner) + 1, dtype=np.int64),
            self.weight,
            self.near,
            self.origin,
        )

    @cached_property
    def asked(self) -> Batch:
        """The same items with what was said to the system, the last turn of their context, for
        their only reference; none where it is blank or where there is no context."""
        return Batch.of([_asked(item) for item in self.items]).present()

    def slices(self, letters: int) -> Iterator[Batch]:
        """The batch in pieces of whole items, whose texts together have about so many letters
        at most: what is computed of them stays small, however long texts are."""
        length = self.table.letters
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(length[self.reference])])
        through = np.cumsum(length[self.reply] + np.diff(ends[self.first]))
        begin = 0
        while begin < len(self):
            before = through[begin - 1] if begin else 0
            end = max(int(np.searchsorted(through, before + letters, "right")), begin + 1)
            yield self if (begin, end) == (0, len(self)) else self.take(np.arange(begin, end))
            begin = end


def _asked(item: Item) -> Item:
    turns = [Reference(turn) for turn in item.context[-1:]]
    return msgspec.structs.replace(item, references=turns)


def _numbers(number: Mapping[str, int], texts: Sequence[str]) -> Ints:
    return np.fromiter(map(number.__getitem__, texts), np.int64, len(texts))


def _or_one(values: Sequence[float | None]) -> Floats:
    return np.array([1.0 if value is None else value for value in values], dtype=np.float64)
