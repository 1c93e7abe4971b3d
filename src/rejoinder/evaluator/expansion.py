"""Expansion of a batch of items: references from an evaluator's pool, their ratings, coverage.

The pool is searched at once, ratings and vectors are computed when they are first used.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rejoinder.evaluator.coverage import NEAREST, Coverage, agreements, nearest
from rejoinder.evaluator.rating import rate_references
from rejoinder.items import Item
from rejoinder.retrieve.leaks import find_leaks
from rejoinder.retrieve.retrieved_references import (
    ExpansionSettings,
    ItemQueries,
    ReferenceSelector,
    RetrievedReference,
    with_references,
)
from rejoinder.retrieve.retriever import Mask

if TYPE_CHECKING:
    from rejoinder.evaluator.evaluator import Evaluator


class Expansion:
    """References that were retrieved for some items."""

    def __init__(
        self,
        evaluator: Evaluator,
        items: Sequence[Item],
        retrieved: list[list[RetrievedReference]],
        nearest: NDArray[np.float64],
    ) -> None:
        self.evaluator, self._items = evaluator, items
        self.retrieved, self._nearest = retrieved, nearest

    @classmethod
    def of(
        cls,
        evaluator: Evaluator,
        items: Sequence[Item],
        k: int | None = None,
        leaks: Mask | None = None,
    ) -> Expansion:
        """Search the pool for references of the items.

        ``leaks`` marks rows that must not be used; by default those whose utterance is the last
        turn of one of the items.
        """
        pool, retriever = evaluator.pool, evaluator.retriever
        defaults = evaluator.manifest.retrieval
        settings = ExpansionSettings(defaults.k if k is None else k, defaults.parrot)
        queries = ItemQueries.of(items, retriever)
        if leaks is None:
            leaks, _ = find_leaks(pool, queries.last_turns)
        size = min(max(queries.rows_to_search(settings.k), NEAREST), pool.size)
        hits = pool.search(retriever, queries.queries, size, exclude=leaks, distinct=True)
        retrieved = ReferenceSelector(pool, hits, settings).select(items, queries.query_numbers)
        near = nearest(hits)[np.asarray(queries.query_numbers, np.int64)]
        for number, item in enumerate(items):
            # without a context, references cannot be rated and say nothing about the reply
            if not any(turn.strip() for turn in item.context):
                retrieved[number], near[number] = [], np.nan
            retrieved[number] = [each for each in retrieved[number] if each.text.strip()]
        return cls(evaluator, items, retrieved, near)

    @cached_property
    def items(self) -> list[Item]:
        """The items with their own references and the retrieved ones, the latter with ratings."""
        references = rate_references(self.evaluator, self._items, self.retrieved)
        return list(map(with_references, self._items, references))

    @cached_property
    def coverage(self) -> Coverage:
        """How well the pool covers the context of each item."""
        return Coverage(self._nearest, agreements(self.evaluator, self.retrieved))
