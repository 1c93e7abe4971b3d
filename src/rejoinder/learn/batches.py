"""Batches that can be requested by number: the same seed, epoch and step give the same batch.

So a run that was killed continues with exactly the batches that were left, without drawing the
earlier ones again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Batch_co = TypeVar("Batch_co", covariant=True)
Rows = NDArray[np.int64]

LENGTH_NOISE = 0.1
"""Rows are sorted by length times a random factor of up to 1 + this: rows of a batch have similar
lengths, but batches differ between epochs."""


class BatchSource(Protocol[Batch_co]):
    """Provides the batches of each epoch."""

    def steps(self, seed: int, epoch: int) -> int:
        """Return the number of batches in the epoch; at least one."""

    def batch(self, seed: int, epoch: int, step: int) -> Batch_co:
        """Return one batch; the same arguments give the same batch."""


def make_rng(*numbers: int) -> np.random.Generator:
    """Return a random generator that depends on these numbers only."""
    return np.random.default_rng(list(numbers))


class PlannedBatches:
    """Base of batch sources whose rows are grouped by a plan.

    Batches are shuffled for training; with ``fixed`` (validation) they are always the same.
    """

    plan: LengthBatches
    fixed: bool

    def batches(self, seed: int, epoch: int) -> list[Rows]:
        return self.plan.in_order if self.fixed else self.plan.shuffled(seed, epoch)

    def steps(self, seed: int, epoch: int) -> int:
        return len(self.batches(seed, epoch))


@dataclass
class LengthBatches:
    """Groups rows of similar length into batches, so that there is little padding.

    A batch has at most ``max_tokens`` tokens after padding to its longest row, and at most
    ``max_rows`` rows. A row that is longer than ``max_tokens`` is a batch of its own.
    """

    lengths: Rows
    max_tokens: int
    max_rows: int | None = None

    def __post_init__(self) -> None:
        self._shuffled: tuple[tuple[int, int], list[Rows]] | None = None

    def shuffled(self, seed: int, epoch: int) -> list[Rows]:
        """Return the rows of each batch of an epoch: every row once, in a new order each epoch."""
        if self._shuffled is None or self._shuffled[0] != (seed, epoch):
            rng = make_rng(seed, epoch)
            noisy = self.lengths * rng.uniform(1.0, 1.0 + LENGTH_NOISE, len(self.lengths))
            batches = self._cut(np.argsort(noisy, kind="stable"))
            order = rng.permutation(len(batches))
            self._shuffled = ((seed, epoch), [batches[k] for k in order])
        return self._shuffled[1]

    @cached_property
    def in_order(self) -> list[Rows]:
        """The rows of each batch without shuffling, shortest first: for validation."""
        return self._cut(np.argsort(self.lengths, kind="stable"))

    def _cut(self, order: Rows) -> list[Rows]:
        longest = np.maximum.accumulate(self.lengths[order])
        batches = []
        start = 0
        while start < len(order):
            limit = max(1, self.max_tokens // max(1, int(longest[start])))
            if self.max_rows is not None:
                limit = min(limit, self.max_rows)
            widths = longest[start : start + limit]
            size = max(1, int((widths * np.arange(1, len(widths) + 1) <= self.max_tokens).sum()))
            batches.append(order[start : start + size])
            start += size
        return batches
