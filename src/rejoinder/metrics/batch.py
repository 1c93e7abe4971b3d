"""A batch of items as columns of numbers: texts are interned, references are ragged.

Selecting items and pairing replies with single references are index operations; the text
table, and with it every tokenization, is shared by all batches derived from one another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from rejoinder.items import Item
from rejoinder.text.tokens import TextTable

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


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

    @classmethod
    def of(cls, items: Sequence[Item]) -> Batch:
        number: defaultdict[str, int] = defaultdict(count().__next__)
        references = [r for item in items for r in item.references]
        reply = _numbers(number, [item.response for item in items])
        reference = _numbers(number, [r.text for r in references])
        weights = [r.weight for r in references]
        weight = np.array([1.0 if w is None else w for w in weights], dtype=np.float64)
        first = np.zeros(len(items) + 1, np.int64)
        np.cumsum([len(item.references) for item in items], out=first[1:])
        return cls(items, TextTable(list(number)), reply, reference, first, weight)

    def __len__(self) -> int:
        return len(self.reply)

    @property
    def counts(self) -> Ints:
        """[n] how many references each item has."""
        return np.diff(self.first)

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
        )

    def present(self) -> Batch:
        """The same items without blank references: a text of white space is not there."""
        return self._only(~self.table.blank[self.reference])

    def positive(self) -> Batch:
        """The same items without the references whose weight is not above 0: those are known
        to be no good replies, and a metric that reads no weights must not take them for such."""
        return self._only(self.weight > 0)

    def _only(self, good: NDArray[np.bool_]) -> Batch:
        if good.all():
            return self
        kept = np.concatenate([np.zeros(1, np.int64), np.cumsum(good)])[self.first]
        return Batch(
            self.items, self.table, self.reply, self.reference[good], kept, self.weight[good]
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
        )


def _numbers(number: Mapping[str, int], texts: Sequence[str]) -> Ints:
    return np.fromiter(map(number.__getitem__, texts), np.int64, len(texts))
