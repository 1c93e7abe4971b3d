"""Statistics added up by context, from which confidence intervals are resampled.

Replies to one context are drawn together, so the sum of its rows is all that a bootstrap needs
(a cluster bootstrap). The contexts of a small set are kept one by one. Those of a large set are
added up in blocks, chosen by a hash of the context: blocks of random contexts vary like contexts
do, and memory does not grow with the set. Neither depends on the order of the items, on batches,
or on the number of processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from rejoinder.metrics.batch import Floats

Keys = NDArray[np.uint64]

BLOCKS = 2**12
"""Number of blocks, a power of 2, and the largest number of contexts that are kept one by one."""


@dataclass(frozen=True)
class ContextSums:
    """[n] distinct keys of contexts in order, or numbers of blocks, and [n, d] their sums."""

    keys: Keys
    sums: Floats
    in_blocks: bool = False

    @classmethod
    def of(cls, keys: Keys, rows: Floats) -> ContextSums:
        """Add up rows by context."""
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        return cls(ordered[first], np.add.reduceat(rows[order], first))._folded()

    def __len__(self) -> int:
        return len(self.keys)

    def __add__(self, other: ContextSums) -> ContextSums:
        if not (self.in_blocks or other.in_blocks):
            keys = np.concatenate([self.keys, other.keys])
            return ContextSums.of(keys, np.concatenate([self.sums, other.sums]))
        one, two = self._blocks(), other._blocks()
        return ContextSums(one.keys, one.sums + two.sums, in_blocks=True)

    def _folded(self) -> ContextSums:
        return self._blocks() if len(self.keys) > BLOCKS else self

    def _blocks(self) -> ContextSums:
        if self.in_blocks:
            return self
        sums = np.zeros((BLOCKS, self.sums.shape[1]))
        np.add.at(sums, self.keys & np.uint64(BLOCKS - 1), self.sums)
        return ContextSums(np.arange(BLOCKS, dtype=np.uint64), sums, in_blocks=True)


def context_keys(groups: Sequence[str]) -> Keys:
    """Return a number for each context that is the same in every process, unlike ``hash``."""
    number = {
        group: int.from_bytes(
            blake2b(group.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little"
        )
        for group in dict.fromkeys(groups)
    }
    return np.fromiter(map(number.__getitem__, groups), np.uint64, len(groups))
