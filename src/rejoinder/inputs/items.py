"""What may be given where items are wanted: items, dictionaries, a file, a frame.

A dictionary is taken at its word, as a line of a file is. In a frame every row has every column,
so there a missing value (null, None, NaN, NA) means that the field is absent.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from rejoinder.errors import DataError
from rejoinder.io import explain, read_items
from rejoinder.items import Item, checked, item_from

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

    Given: TypeAlias = (
        Iterable[Item | Mapping[str, Any]] | str | os.PathLike[str] | IntoFrame | Item
    )


def as_items(given: Given) -> tuple[Iterator[Item], str | None]:
    """The items, and which kind of frame they came in, if they did."""
    if isinstance(given, (str, os.PathLike)):
        return read_items(os.fspath(given)), None
    if isinstance(given, (Item, Mapping)) and not is_dataset(given):
        raise DataError("expected a list of items, got one item; put it in brackets: [item]")
    kind = getattr(given, "kind", None)  # of our own lists, which may have come from a frame
    if isinstance(given, (list, tuple)):
        return _converted(given), kind if isinstance(kind, str) else None
    from rejoinder.inputs.frames import rows_of

    if (found := rows_of(given)) is not None:
        rows, kind = found
        return _unique(rows), kind
    if not isinstance(given, Iterable):
        raise DataError(
            "expected items, dictionaries, the name of a file, or a frame (pandas, polars, pyarrow,"
            f" datasets), got {type(given).__name__}"
        )
    return _converted(given), None


def is_dataset(given: Any) -> bool:
    """Whether it is from Hugging Face's library, which nobody needs to have."""
    return type(given).__module__.partition(".")[0] == "datasets"


def _converted(given: Iterable[Any]) -> Iterator[Item]:
    return _unique(_item(number, each) for number, each in enumerate(given))


def _item(number: int, given: Any) -> Item:
    """Items as they are, dictionaries with the fields of the items format converted."""
    if isinstance(given, Item):
        return made(f"item {number}", checked, given)
    if isinstance(given, Mapping):
        return made(f"item {number}", item_from, dict(given))
    raise DataError(
        f"expected an item or a dictionary, got {type(given).__name__}", path=f"item {number}"
    )


def made(where: str, convert: Any, given: Any) -> Item:
    """An item; what is wrong with it is said in our words."""
    try:
        item: Item = convert(given)
    except (msgspec.ValidationError, OverflowError) as error:
        raise DataError(explain(str(error)), path=where) from None
    return item


def _unique(items: Iterable[Item]) -> Iterator[Item]:
    seen: set[str] = set()
    for item in items:
        if item.id in seen:
            raise DataError(f"the id '{item.id}' stands twice; ids must be unique")
        seen.add(item.id)
        yield item
    if not seen:
        raise DataError("there are no items (was the iterator used up before?)")
