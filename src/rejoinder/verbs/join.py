"""``join``: put files of items, or of scores, into one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rejoinder.errors import DataError, UsageError
from rejoinder.files.item_file import ItemFile, repetition_note
from rejoinder.files.jsonl import write_jsonl
from rejoinder.files.output import open_output
from rejoinder.files.paths import check_output
from rejoinder.items import Item, ItemReader
from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.notes import keep_notes
from rejoinder.verbs.results import Result
from rejoinder.wording import option

if TYPE_CHECKING:
    from rejoinder.files.columns import Columns


@dataclass(frozen=True)
class JoinResult(Result):
    """The number of lines that were written."""

    lines: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@keep_notes
def join(
    files: Sequence[str | os.PathLike[str]] | os.PathLike[str],
    *,
    output: str | os.PathLike[str],
    columns: Columns | None = None,
    monitor: Monitor = SILENT,
) -> JoinResult:
    """Put items together, or scores: replies of several systems, runs of ``score``.

    An item may occur once, and so may a metric's score of an item. Items may be in tables, whose
    ``columns`` are found as everywhere; they are written as JSON lines. Of several files, those
    that have none of the named ``columns`` are read as if none were named.
    """
    inputs = [files] if isinstance(files, (str, os.PathLike)) else files
    names, target = [os.fspath(file) for file in inputs], Path(output)
    check_output(target, names)
    first: dict[tuple[str, ...], str] = {}
    columns_found = not columns
    with open_output(target) as stream:
        for name in names:
            source = ItemFile(name, columns, monitor.note, one_of_several=len(names) > 1)
            of_table = not source.format.startswith("json")
            reader = ItemReader(of_table=of_table)
            convert = reader.item if of_table else partial(_with_id, reader)
            for number, record in source.decode(convert):
                key = (record.id,) if isinstance(record, Item) else _key(record)
                if key in first:
                    raise source.wrong(number, f"'{key[0]}' is already in {first[key]}")
                first[key] = f"{source.name}:{number}"
                line: list[Any] = [record]
                write_jsonl(stream, line)
            columns_found |= source.columns_found
            source.note(repetition_note(reader.repeated))
        if not first:
            raise DataError("the file is empty; expected items, or scores", path=names[0])
        if not columns_found:
            raise UsageError(f"{option('columns')}: none of the files has any of these columns")
    return JoinResult(len(first))


def _with_id(reader: ItemReader, record: dict[str, Any]) -> dict[str, Any] | Item:
    """Return a line as it is, unless it is an item without an id."""
    if "id" not in record and record.get("metric") is None:
        return reader.item(record)
    if type(record.get("id")) not in (str, int):
        raise msgspec.ValidationError("Expected a text in the field id")
    return record


def _key(record: dict[str, Any]) -> tuple[str, ...]:
    """Return what must be unique: an item, or a metric's score of it.

    A numeric id is the same as its digits, as it is where items are read.
    """
    name = str(record["id"])
    if record.get("metric") is None:
        return (name,)
    level, system = record.get("level", "item"), record.get("system")
    return name, str(record["metric"]), str(level), str(system)
