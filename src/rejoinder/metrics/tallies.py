"""Counts and sums of scored items by metric and system, which add up over batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from rejoinder.item_table import ItemTable
from rejoinder.metrics.batch import Floats, Ints
from rejoinder.metrics.batch_scores import BatchScores
from rejoinder.metrics.context_sums import ContextSums, context_keys
from rejoinder.metrics.reasons import kind_of


@dataclass
class Tally:
    """What one metric found for one system."""

    scored: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    """Unscored items by their reason."""
    total: Floats | None = None
    """[d + 2] the sum of the statistics, of the scores, and of 1 for each scored item."""
    contexts: ContextSums | None = None
    """The same sums by context, if there are to be intervals."""

    def context_rows(self) -> Floats:
        """Return [n, d + 2] the sums of the contexts, or blocks, that have a scored item."""
        if self.contexts is None:
            return np.zeros((0, 0))
        sums = self.contexts.sums
        return sums[sums[:, -1] > 0]

    def add(self, other: Tally) -> None:
        self.scored += other.scored
        self.reasons.update(other.reasons)
        if other.total is None:
            return
        self.total = other.total if self.total is None else self.total + other.total
        if other.contexts is not None:
            before = self.contexts
            self.contexts = other.contexts if before is None else before + other.contexts


@dataclass
class Tallies:
    """The tallies of all metrics and systems of some items."""

    of_systems: dict[tuple[int, str], Tally] = field(default_factory=dict)
    """By number of the metric and system."""
    blank_replies: Counter[str] = field(default_factory=Counter)
    """Number of blank replies by system."""
    without_contexts: set[str] = field(default_factory=set)
    """Systems whose contexts do not fit into memory."""

    @classmethod
    def of(
        cls, items: ItemTable, results: Sequence[BatchScores], *, with_contexts: bool
    ) -> Tallies:
        """Count and add up a batch."""
        tallies = cls()
        keys = context_keys(items.groups()) if with_contexts else None
        blank = [not text or text.isspace() for text in items.responses]
        systems = list(_places(items.systems))
        for system, places in systems:
            if count := sum(blank[place] for place in places.tolist()):
                tallies.blank_replies[system] = count
        for which, result in enumerate(results):
            scored = result.scored
            rows = np.column_stack([result.rows, result.values, np.ones(len(items))])
            for system, places in systems:
                kept = places[scored[places]]
                tally = tallies.of_systems[which, system] = Tally(len(kept))
                if len(kept) < len(places):
                    without = places[~scored[places]]
                    tally.reasons.update(map(kind_of, result.reasons[without].tolist()))
                if len(kept):
                    own = rows[kept]
                    tally.total = own.sum(axis=0)
                    tally.contexts = None if keys is None else ContextSums.of(keys[kept], own)
        return tallies

    def add(self, other: Tallies) -> None:
        """Add the tallies of items that come later."""
        self.blank_replies.update(other.blank_replies)
        for key, theirs in other.of_systems.items():
            if key[1] in self.without_contexts:
                theirs.contexts = None
            self.of_systems.setdefault(key, Tally()).add(theirs)

    def drop_contexts_beyond(self, max_numbers: int) -> None:
        """Forget the contexts of the systems that came last, if they take more numbers."""
        sizes = {
            key: tally.contexts.sums.size
            for key, tally in self.of_systems.items()
            if tally.contexts is not None
        }
        excess = sum(sizes.values()) - max_numbers
        for system in reversed(list(dict.fromkeys(system for _, system in sizes))):
            if excess <= 0:
                return
            self.without_contexts.add(system)
            for key in [key for key in sizes if key[1] == system]:
                excess -= sizes[key]
                self.of_systems[key].contexts = None


def _places(systems: Sequence[str]) -> Iterator[tuple[str, Ints]]:
    """Yield each system, in order of appearance, with the places where it stands."""
    number: dict[str, int] = {}
    codes = np.fromiter((number.setdefault(each, len(number)) for each in systems), np.int64)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes))
    yield from zip(number, np.split(order, ends[:-1]), strict=True)
