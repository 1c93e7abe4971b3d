"""What an evaluator has for a chunk of items: references from its pool, rated, and coverage.

An expansion looks into the pool at once, since everything else follows from what is found there;
ratings and vectors are computed when they are first asked for, and once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rejoinder.evaluator.coverage import NEAREST, Coverage, agreements, nearest
from rejoinder.evaluator.rating import rated
from rejoinder.items import Item
from rejoinder.retrieve.base import Mask
from rejoinder.retrieve.leaks import find_leaks
from rejoinder.retrieve.references import Finder, Found, Questions, Settings, with_references

if TYPE_CHECKING:
    from rejoinder.evaluator.folder import Evaluator


class Expansion:
    """What was found for some items."""

    def __init__(
        self,
        evaluator: Evaluator,
        items: Sequence[Item],
        found: list[list[Found]],
        nearest: NDArray[np.float64],
    ) -> None:
        self.evaluator, self._items = evaluator, items
        self.found, self._nearest = found, nearest

    @classmethod
    def of(
        cls,
        evaluator: Evaluator,
        items: Sequence[Item],
        k: int | None = None,
        leaks: Mask | None = None,
    ) -> Expansion:
        """Look up the items; without ``leaks``, pairs that have their last turns are left out."""
        pool, retriever = evaluator.pool, evaluator.retriever
        planned = evaluator.manifest.retrieval
        settings = Settings(planned.k if k is None else k, planned.parrot)
        asked = Questions.of(items, retriever)
        if leaks is None:
            leaks, _ = find_leaks(pool, asked.last_turns)
        size = min(max(asked.wanted(settings.k), NEAREST), pool.size)
        hits = pool.search(retriever, asked.queries, size, exclude=leaks, distinct=True)
        found = Finder(pool, hits, settings).found(items, asked.of_item)
        near = nearest(hits)[np.asarray(asked.of_item, np.int64)]
        for number, item in enumerate(items):
            # what fits nothing that was said can't be rated, and says nothing of the reply
            if not any(turn.strip() for turn in item.context):
                found[number], near[number] = [], np.nan
            found[number] = [each for each in found[number] if each.text.strip()]
        return cls(evaluator, items, found, near)

    @cached_property
    def items(self) -> list[Item]:
        """The items with their own references, then those that were found, each with its rating."""
        references = rated(self.evaluator, self._items, self.found)
        return list(map(with_references, self._items, references))

    @cached_property
    def coverage(self) -> Coverage:
        """How well the pool covers the context of each item."""
        return Coverage(self._nearest, agreements(self.evaluator, self.found))
