"""Batches that can be asked for by number: the same seed, epoch and step give the same batch.

So a run that was killed goes on with exactly the batches it would have had, without drawing all
those before them again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Batch_co = TypeVar("Batch_co", covariant=True)
Rows = NDArray[np.int64]

SPREAD = 0.1
"""How much longer a row may count than it is when rows are sorted: so that the rows of a batch
are of about one length, but not the same rows in every epoch."""


class Source(Protocol[Batch_co]):
    """Where batches come from."""

    def steps(self, seed: int, epoch: int) -> int:
        """How many batches the epoch has; at least one."""

    def batch(self, seed: int, epoch: int, step: int) -> Batch_co:
        """One of them, the same whenever it is asked for."""


def generator(*numbers: int) -> np.random.Generator:
    """Chance that depends on these numbers alone."""
    return np.random.default_rng(list(numbers))


class Planned:
    """What sources over a plan share: their batches by number, with chance or, for validation,
    without."""

    plan: LengthBatches
    fixed: bool

    def batches(self, seed: int, epoch: int) -> list[Rows]:
        return self.plan.in_order if self.fixed else self.plan.plan(seed, epoch)

    def steps(self, seed: int, epoch: int) -> int:
        return len(self.batches(seed, epoch))


@dataclass
class LengthBatches:
    """Which rows make a batch: rows of about one length, so that little is padded.

    A batch has at most ``tokens`` tokens when its rows are padded to the longest, and at most
    ``most`` rows. A row that is longer than a batch may be stands alone.
    """

    lengths: Rows
    tokens: int
    most: int | None = None

    def __post_init__(self) -> None:
        self._planned: tuple[tuple[int, int], list[Rows]] | None = None

    def plan(self, seed: int, epoch: int) -> list[Rows]:
        """The rows of each batch of an epoch: every row once, in a new order each time."""
        if self._planned is None or self._planned[0] != (seed, epoch):
            chance = generator(seed, epoch)
            stretched = self.lengths * chance.uniform(1.0, 1.0 + SPREAD, len(self.lengths))
            batches = self._cut(np.argsort(stretched, kind="stable"))
            order = chance.permutation(len(batches))
            self._planned = ((seed, epoch), [batches[k] for k in order])
        return self._planned[1]

    @cached_property
    def in_order(self) -> list[Rows]:
        """The same without chance, for validation: shortest first."""
        return self._cut(np.argsort(self.lengths, kind="stable"))

    def _cut(self, order: Rows) -> list[Rows]:
        longest = np.maximum.accumulate(self.lengths[order])
        batches = []
        start = 0
        while start < len(order):
            fits = max(1, self.tokens // max(1, int(longest[start])))
            if self.most is not None:
                fits = min(fits, self.most)
            widths = longest[start : start + fits]
            size = max(1, int((widths * np.arange(1, len(widths) + 1) <= self.tokens).sum()))
            batches.append(order[start : start + size])
            start += size
        return batches
