"""From items to questions, and from what was found in a pool to references.

The two halves of an expansion, whether a file is expanded or a few items in memory: each question
is asked once, whatever the number of items that ask it, and an item gets no text twice.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
import numpy as np

from rejoinder.items import PARROT, RETRIEVED, Item, Reference
from rejoinder.retrieve.base import RESPONSE, Hits, Queries, Retriever
from rejoinder.retrieve.pool import Pool

NOTHING_SIMILAR = "nothing in the pool is similar"
NOTHING_NEW = "what is similar stands there already"

DIGITS = 6
"""Of a similarity or a rating as it is written."""


@dataclass(frozen=True)
class Settings:
    """What is added to each item."""

    k: int = 15
    parrot: bool = True
    keep_leaks: bool = False
    """Also take pairs whose utterance is the last turn of an item."""


STANDARD = Settings()


@dataclass
class Questions:
    """What the items ask: distinct queries, and which item asks which."""

    utterances: list[str] = field(default_factory=list)
    responses: list[str | None] = field(default_factory=list)
    of_item: array[int] = field(default_factory=lambda: array("q"))
    given: list[int] = field(default_factory=list)
    """How many distinct texts an item with this query has at most: so many more are looked for."""
    last_turns: dict[str, None] = field(default_factory=dict)
    contexts: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, items: Iterable[Item], retriever: Retriever) -> Questions:
        asked = cls()
        numbers: dict[tuple[str, str | None], int] = {}
        compares = RESPONSE in retriever.keys
        for item in items:
            reply = item.references[0].text if compares and item.references else None
            key = retriever.key(item.context), reply
            number = numbers.setdefault(key, len(numbers))
            if number == len(asked.utterances):
                asked.utterances.append(key[0])
                asked.responses.append(reply)
                asked.given.append(0)
            texts = {reference.text for reference in item.references}
            asked.given[number] = max(asked.given[number], len(texts))
            asked.of_item.append(number)
            asked.contexts.add(item.group)
            if item.context:
                asked.last_turns.setdefault(item.context[-1])
        return asked

    @property
    def queries(self) -> Queries:
        return Queries(self.utterances, self.responses)

    def wanted(self, k: int) -> int:
        """How many rows to look for: texts that an item has already take places."""
        return k + max(self.given, default=0)


@dataclass(frozen=True)
class Found:
    """A reference for an item, and the row of the pool that it came from; the parrot has none."""

    text: str
    row: int | None
    similarity: float | None = None

    def reference(self, weight: float | None = None) -> Reference:
        if self.row is None:
            return Reference(self.text, weight=weight, source=PARROT)
        return Reference(self.text, weight=weight, source=RETRIEVED, score=self.similarity)


class Weigh(Protocol):
    """Makes references of what was found for items, rated or not."""

    def __call__(
        self, items: Sequence[Item], found: Sequence[Sequence[Found]]
    ) -> list[list[Reference]]: ...


def unrated(items: Sequence[Item], found: Sequence[Sequence[Found]]) -> list[list[Reference]]:
    return [[each.reference() for each in some] for some in found]


class Finder:
    """Reads out of hits what each item gets."""

    def __init__(self, pool: Pool, hits: Hits, settings: Settings) -> None:
        self._pool, self._hits, self._settings = pool, hits, settings

    def found(self, items: Sequence[Item], numbers: Sequence[int]) -> list[list[Found]]:
        """For each item, which asked the question of this number, what it gets: best first, then
        the parrot. Nothing at all where nothing was retrieved."""
        rows = self._hits.rows[np.asarray(numbers, np.int64)]
        rows = np.unique(rows[rows >= 0])
        texts = dict(zip(rows.tolist(), self._pool.responses(rows), strict=True))
        return [self._of(item, number, texts) for item, number in zip(items, numbers, strict=True)]

    def _of(self, item: Item, number: int, texts: dict[int, str]) -> list[Found]:
        have = {reference.text for reference in item.references}
        found: list[Found] = []
        pairs = zip(self._hits.rows[number].tolist(), self._hits.scores[number], strict=True)
        for row, score in pairs:
            if row < 0 or len(found) == self._settings.k:
                break
            if texts[row] not in have:
                found.append(Found(texts[row], row, round(float(score), DIGITS)))
        if not found:
            return []
        have |= {each.text for each in found}
        utterance = item.context[-1] if item.context else ""
        if self._settings.parrot and utterance and utterance not in have:
            found.append(Found(utterance, None))
        return found

    def reason(self, number: int) -> str:
        """Why a question brought nothing."""
        if number in self._hits.reasons:
            return self._hits.reasons[number]
        return NOTHING_SIMILAR if self._hits.rows[number, 0] < 0 else NOTHING_NEW


def with_references(item: Item, more: Sequence[Reference]) -> Item:
    return msgspec.structs.replace(item, references=[*item.references, *more]) if more else item
