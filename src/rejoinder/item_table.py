"""Items side by side: a list for each field, and an item only where somebody asks for one.

Metrics over words read a few fields of millions of items, and making an object of each costs more
than to score it. What needs a whole item indexes the table, which is a sequence of items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, overload

from rejoinder.items import TURN_END, Item, Ratings, Reference


@dataclass(frozen=True)
class ItemTable(Sequence[Item]):
    """Items by field; all lists have the same length."""

    ids: list[str]
    responses: list[str]
    contexts: list[list[str]]
    systems: list[str]
    references: list[list[str | Reference]]
    """The references of each item; those with no more than a text may be plain texts."""
    ratings: list[Ratings]
    context_ids: list[str | None]
    items: Sequence[Item] | None = field(default=None, repr=False)
    """The items that the table was made of, if they existed before it."""

    @classmethod
    def of(cls, items: Sequence[Item]) -> ItemTable:
        """Return the table of items; itself if it is one."""
        if isinstance(items, ItemTable):
            return items
        return cls(
            ids=[item.id for item in items],
            responses=[item.response for item in items],
            contexts=[item.context for item in items],
            systems=[item.system for item in items],
            references=[list(item.references) for item in items],
            ratings=[item.ratings for item in items],
            context_ids=[item.context_id for item in items],
            items=items,
        )

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> ItemTable: ...
    def __getitem__(self, index: int | slice) -> Item | ItemTable:
        if isinstance(index, slice):
            return ItemTable(
                self.ids[index],
                self.responses[index],
                self.contexts[index],
                self.systems[index],
                self.references[index],
                self.ratings[index],
                self.context_ids[index],
                None if self.items is None else self.items[index],
            )
        if self.items is not None:
            return self.items[index]
        return Item(
            id=self.ids[index],
            response=self.responses[index],
            context=self.contexts[index],
            system=self.systems[index],
            references=[
                Reference(each) if isinstance(each, str) else each
                for each in self.references[index]
            ],
            ratings=self.ratings[index],
            context_id=self.context_ids[index],
        )

    def __reduce__(self) -> Any:
        """Pickle the lists only: items would be the same texts again."""
        columns = self.ids, self.responses, self.contexts, self.systems, self.references
        return ItemTable, (*columns, self.ratings, self.context_ids)

    def groups(self) -> list[str]:
        """Return the key of each item's context, as :attr:`Item.group` does."""
        return [
            named if named is not None else TURN_END.join(turns) if turns else f"(context of {id})"
            for named, turns, id in zip(self.context_ids, self.contexts, self.ids, strict=True)
        ]


def tables_of(items: Iterable[Item] | Iterable[ItemTable], size: int) -> Iterator[ItemTable]:
    """Yield tables as they are, and single items in tables of ``size``."""
    stream: Iterator[Any] = iter(items)
    for first in stream:
        if isinstance(first, ItemTable):
            yield first
        else:
            yield ItemTable.of([first, *islice(stream, size - 1)])


def each_item(items: Iterable[Item] | Iterable[ItemTable]) -> Iterator[Item]:
    """Yield items one by one, also those of tables."""
    for each in items:
        if isinstance(each, ItemTable):
            yield from each
        else:
            yield each


@dataclass(frozen=True)
class ChosenItems(Sequence[Item]):
    """Items at certain places of a sequence, which are looked up when they are asked for."""

    items: Sequence[Item]
    places: Sequence[int]

    @classmethod
    def of(cls, items: Sequence[Item], places: Iterable[int]) -> ChosenItems:
        if isinstance(items, ChosenItems):
            return cls(items.items, [items.places[place] for place in places])
        return cls(items, list(places))

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> ChosenItems: ...
    def __getitem__(self, index: int | slice) -> Item | ChosenItems:
        if isinstance(index, slice):
            return ChosenItems(self.items, self.places[index])
        return self.items[self.places[index]]
