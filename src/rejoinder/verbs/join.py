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
from rejoinder.files.item_file import ItemFile, read_items, repetition_note
from rejoinder.files.jsonl import write_jsonl
from rejoinder.files.output import open_output
from rejoinder.files.paths import check_output
from rejoinder.items import Item, ItemReader, item_from
from rejoinder.meta_evaluation.annotators import DISTRACTOR
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
    ratings: str | os.PathLike[str] | None = None,
    columns: Columns | None = None,
    monitor: Monitor = SILENT,
) -> JoinResult:
    """Put items together, or scores: replies of several systems, runs of ``score``.

    An item may occur once, and so may a metric's score of an item. Items may be in tables, whose
    ``columns`` are found as everywhere; they are written as JSON lines. Of several files, those
    that have none of the named ``columns`` are read as if none were named.

    ``ratings`` is a file of some of the items with ratings, such as ``annotate export`` writes it:
    the items get its ratings, and inclusion probabilities, in addition to those that they have.
    """
    inputs = [files] if isinstance(files, (str, os.PathLike)) else files
    names, target = [os.fspath(file) for file in inputs], Path(output)
    check_output(target, [*names, ratings])
    given = {} if ratings is None else _ratings(os.fspath(ratings), monitor)
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
                line: list[Any] = [_rated(source, number, record, given)]
                write_jsonl(stream, line)
            columns_found |= source.columns_found
            source.note(repetition_note(reader.repeated))
        if not first:
            raise DataError("the file is empty; expected items, or scores", path=names[0])
        if given:
            raise DataError(
                f"{len(given):,} rated items, the first is '{next(iter(given))}', are not in"
                f" {', '.join(names)}; give the items that were chosen from",
                path=os.fspath(ratings or ""),
            )
        if not columns_found:
            raise UsageError(f"{option('columns')}: none of the files has any of these columns")
    return JoinResult(len(first))


def _ratings(path: str, monitor: Monitor) -> dict[str, Item]:
    """Return the rated items of a file by id; distractors, which nobody chose, are left out."""
    rated = {
        item.id: item
        for item in read_items(path, on_note=monitor.note)
        if item.ratings is not None and item.system != DISTRACTOR
    }
    if not rated:
        raise DataError("no item has ratings", path=path)
    return rated


def _rated(
    source: ItemFile, number: int, record: dict[str, Any] | Item, given: dict[str, Item]
) -> dict[str, Any] | Item:
    """Return an item with the ratings that are given for it, which are then used up."""
    name = record.id if isinstance(record, Item) else str(record["id"])
    if name not in given or (isinstance(record, dict) and record.get("metric") is not None):
        return record
    new = given.pop(name)
    old = record if isinstance(record, Item) else item_from(dict(record))
    if old.response != new.response:
        raise source.wrong(
            number, f"'{name}' has another response than where it was rated; is it another item?"
        )
    both = new.ratings
    if isinstance(old.ratings, dict) and isinstance(new.ratings, dict):
        both = old.ratings | new.ratings
    elif old.ratings is not None and old.ratings != new.ratings:
        raise source.wrong(
            number,
            f"'{name}' already has ratings, and they can't be combined: not all name"
            " their annotator",
        )
    chance = new.inclusion_probability or old.inclusion_probability
    if isinstance(record, Item):
        return msgspec.structs.replace(record, ratings=both, inclusion_probability=chance)
    added = {"ratings": both} | ({} if chance is None else {"inclusion_probability": chance})
    return record | added


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
