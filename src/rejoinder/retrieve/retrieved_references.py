"""Turn items into queries, and hits into references.

Both halves of an expansion are used for files and for items in memory: each query is searched for
once, whatever the number of items that share it, and an item gets no text twice.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import NamedTuple, Protocol

import msgspec
import numpy as np

from rejoinder.items import PARROT, RETRIEVED, Item, Reference
from rejoinder.retrieve.pool import Pool
from rejoinder.retrieve.retriever import RESPONSE, Hits, Queries, Retriever

NOTHING_SIMILAR = "nothing in the pool is similar"
NOTHING_NEW = "all similar responses are references already"

DIGITS = 6
"""Decimal places of similarities and ratings in files."""


@dataclass(frozen=True)
class ExpansionSettings:
    """Which references are added to each item."""

    k: int = 15
    parrot: bool = True
    """Also add the utterance itself, the reply of a parrot (Galley et al. 2015)."""
    keep_leaks: bool = False
    """Also use pairs whose utterance is the last turn of an item."""


DEFAULT_SETTINGS = ExpansionSettings()


@dataclass
class ItemQueries:
    """The distinct queries of some items, and which item has which."""

    utterances: list[str] = field(default_factory=list)
    responses: list[str | None] = field(default_factory=list)
    query_numbers: array[int] = field(default_factory=lambda: array("q"))
    """[items] the query of each item."""
    num_references: list[int] = field(default_factory=list)
    """[queries] the largest number of distinct references of an item with this query."""
    last_turns: dict[str, None] = field(default_factory=dict)
    contexts: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, items: Iterable[Item], retriever: Retriever) -> ItemQueries:
        queries = cls()
        numbers: dict[tuple[str, str | None], int] = {}
        uses_response = RESPONSE in retriever.keys
        for item in items:
            reply = item.references[0].text if uses_response and item.references else None
            key = retriever.key(item.context), reply
            number = numbers.setdefault(key, len(numbers))
            if number == len(queries.utterances):
                queries.utterances.append(key[0])
                queries.responses.append(reply)
                queries.num_references.append(0)
            texts = {reference.text for reference in item.references}
            queries.num_references[number] = max(queries.num_references[number], len(texts))
            queries.query_numbers.append(number)
            queries.contexts.add(item.group)
            if item.context:
                queries.last_turns.setdefault(item.context[-1])
        return queries

    @property
    def queries(self) -> Queries:
        return Queries(self.utterances, self.responses)

    def rows_to_search(self, k: int) -> int:
        """Return how many hits are needed for k new texts: some may be references already."""
        return k + max(self.num_references, default=0)


class RetrievedReference(NamedTuple):
    """A new reference of an item, and the row of the pool that it is from; None for the parrot,
    and for what a language model wrote."""

    text: str
    row: int | None
    similarity: float | None = None
    source: str | None = None
    """Of what a language model wrote."""

    @property
    def key(self) -> int | str | None:
        """What decides its rating, in a given context: the row, or the text that a model wrote."""
        return self.row if self.source is None else self.text

    def reference(self, weight: float | None = None) -> Reference:
        if self.row is None:
            return Reference(self.text, weight=weight, source=self.source or PARROT)
        return Reference(self.text, weight=weight, source=RETRIEVED, score=self.similarity)


class RateReferences(Protocol):
    """Makes references, with or without weights, from the hits of items."""

    def __call__(
        self, items: Sequence[Item], retrieved: Sequence[Sequence[RetrievedReference]]
    ) -> list[list[Reference]]: ...


def unrated(
    items: Sequence[Item], retrieved: Sequence[Sequence[RetrievedReference]]
) -> list[list[Reference]]:
    """Make references without weights."""
    return [[each.reference() for each in some] for some in retrieved]


class ReferenceSelector:
    """Selects the references of each item from the hits of its query."""

    def __init__(self, pool: Pool, hits: Hits, settings: ExpansionSettings) -> None:
        self._pool, self._hits, self._settings = pool, hits, settings

    def select(
        self, items: Sequence[Item], query_numbers: Sequence[int]
    ) -> list[list[RetrievedReference]]:
        """Return the new references of each item: best first, then the parrot; none at all if
        nothing was retrieved."""
        rows = self._hits.rows[np.asarray(query_numbers, np.int64)]
        rows = np.unique(rows[rows >= 0])
        texts = dict(zip(rows.tolist(), self._pool.responses(rows), strict=True))
        # systems that are compared share contexts and references
        select = lru_cache(maxsize=None)(partial(self._select_for, texts))
        return [
            list(
                select(
                    number,
                    frozenset(reference.text for reference in item.references),
                    item.context[-1] if item.context else "",
                )
            )
            for item, number in zip(items, query_numbers, strict=True)
        ]

    def _select_for(
        self, texts: dict[int, str], number: int, references: frozenset[str], utterance: str
    ) -> list[RetrievedReference]:
        new: list[RetrievedReference] = []
        rows, scores = self._hits.rows[number].tolist(), self._hits.scores[number].tolist()
        for row, score in zip(rows, scores, strict=True):
            if row < 0 or len(new) == self._settings.k:
                break
            if texts[row] not in references:
                new.append(RetrievedReference(texts[row], row, round(score, DIGITS)))
        if not new:
            return []
        present = references | {reference.text for reference in new}
        if self._settings.parrot and utterance and utterance not in present:
            new.append(RetrievedReference(utterance, None))
        return new

    def reason(self, number: int) -> str:
        """Return why a query gave no new reference."""
        if number in self._hits.reasons:
            return self._hits.reasons[number]
        return NOTHING_SIMILAR if self._hits.rows[number, 0] < 0 else NOTHING_NEW


def with_references(item: Item, more: Sequence[Reference]) -> Item:
    """Return the item with further references."""
    return msgspec.structs.replace(item, references=[*item.references, *more]) if more else item
