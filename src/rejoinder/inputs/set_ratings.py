"""Read ratings of sets of replies: one system's replies to one context, rated together.

    {"context_id": "7", "system": "hred", "ratings": {"ann": 2, "bob": 3}}

The context may be named by its turns instead (``context``). A rated set is kept as an item without
a reply, so that everything that can be asked about ratings of replies can be asked about it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from rejoinder.errors import DataError
from rejoinder.files.item_file import ItemFile, OnNote
from rejoinder.inputs.convert import convert_item
from rejoinder.items import Item, ItemReader

SetRatingsLike = str | os.PathLike[str] | Iterable[Mapping[str, Any]]


def read_set_ratings(source: SetRatingsLike, on_note: OnNote | None = None) -> list[Item]:
    """Return the rated sets of a file (JSONL, CSV, TSV, Parquet) or of dictionaries."""
    if isinstance(source, (str, os.PathLike)):
        file = ItemFile(source, None, on_note, needed=("ratings",))
        sets = list(_of_file(file))
        if not sets:
            raise file.wrong(None, "the file is empty; expected ratings of sets, one a line")
        return sets
    reader = ItemReader()
    sets = [
        convert_item(f"set {number}", lambda record: _set(dict(record), reader), record)
        for number, record in enumerate(source)
    ]
    if not sets:
        raise DataError("there are no ratings of sets")
    return sets


def _of_file(file: ItemFile) -> Iterator[Item]:
    reader = ItemReader()
    for _, rated in file.decode(lambda record: _set(record, reader)):
        yield rated


def _set(record: dict[str, Any], reader: ItemReader) -> Item:
    rated = reader.item({**record, "response": ""})
    if rated.context_id is None and not rated.context:
        raise msgspec.ValidationError("Expected the set's context, as context_id or context")
    if rated.rating() is None:
        raise msgspec.ValidationError("Expected ratings of the set - at `$.ratings`")
    return rated
