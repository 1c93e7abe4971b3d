"""Convert files, frames, dictionaries and items to items.

A dictionary is read like a line of a JSONL file. A frame is read like a table (CSV, Parquet): its
columns may have other names, and a missing value (null, None, NaN, NA) means an absent field.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from rejoinder.errors import DataError
from rejoinder.files.columns import Columns, lookalikes, missing_fields, rename_fields
from rejoinder.files.item_file import OnNote, read_items, repetition_note
from rejoinder.inputs.convert import convert_item, is_dataset
from rejoinder.items import Item, ItemReader, checked
from rejoinder.wording import option

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

    ItemsLike: TypeAlias = (
        Iterable[Item | Mapping[str, Any]] | str | os.PathLike[str] | IntoFrame | Item
    )


def as_items(
    items: ItemsLike,
    columns: Columns | None = None,
    on_note: OnNote | None = None,
    *,
    with_ratings: bool = True,
) -> tuple[Iterator[Item], str | None]:
    """Return the items, and the kind of the frame that they came in, if any.

    ``columns`` maps fields to the columns (or keys) that hold them, as in
    ``{"response": "bot_answer"}``; ``on_note`` receives what was guessed or ignored. Not
    ``with_ratings``, those of the rows of a frame are not read.
    """
    if isinstance(items, (str, os.PathLike)):
        return read_items(os.fspath(items), columns, on_note), None
    if isinstance(items, (Item, Mapping)) and not is_dataset(items):
        raise DataError("expected a list of items, got one item; put it in brackets: [item]")
    kind = getattr(items, "frame_kind", None)  # of our own lists, which may have come from a frame
    if isinstance(items, (list, tuple)):
        return _converted(items, columns, on_note), kind if isinstance(kind, str) else None
    from rejoinder.inputs.frames import rows_of

    if (of_frame := rows_of(items, columns, on_note, with_ratings=with_ratings)) is not None:
        rows, kind = of_frame
        return _unique(rows), kind
    if not isinstance(items, Iterable):
        raise DataError(
            "expected items, dictionaries, the name of a file, or a frame (pandas, polars, pyarrow,"
            f" datasets), got {type(items).__name__}"
        )
    return _converted(items, columns, on_note), None


def _converted(
    items: Iterable[Any], columns: Columns | None, on_note: OnNote | None
) -> Iterator[Item]:
    noted: set[str] = set()
    names: set[str] = set()
    reader = ItemReader()

    def convert(number: int, value: Any) -> Item:
        if isinstance(value, Item):
            return convert_item(f"item {number}", checked, value)
        if not isinstance(value, Mapping):
            raise DataError(
                f"expected an item or a dictionary, got {type(value).__name__}",
                path=f"item {number}",
            )
        record = dict(value)
        if columns:
            names.update(record)
            record = rename_fields(record, columns)
        if on_note is not None:
            for name, field in lookalikes(record).items():
                if name not in noted:
                    noted.add(name)
                    on_note(
                        f"the key '{name}' is not read; if it holds the {field},"
                        f" add {option('columns', {field: name})}"
                    )
        return convert_item(f"item {number}", reader.item, record)

    yield from _unique(convert(number, value) for number, value in enumerate(items))
    if columns and names and (problem := missing_fields(columns, names)):
        raise DataError(problem)
    if on_note is not None and (note := repetition_note(reader.repeated)):
        on_note(note)


def _unique(items: Iterable[Item]) -> Iterator[Item]:
    ids: set[str] = set()
    for item in items:
        if item.id in ids:
            raise DataError(f"the id '{item.id}' occurs twice; ids must be unique")
        ids.add(item.id)
        yield item
    if not ids:
        raise DataError("there are no items (was the iterator already used up?)")
