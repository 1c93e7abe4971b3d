"""Convert lists of texts to items: ``score(replies=[…], references=[[…]], contexts=[[…]])``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from rejoinder.errors import UsageError
from rejoinder.inputs.convert import convert_item
from rejoinder.items import Item, Reference, item_from


def from_texts(
    replies: Sequence[str],
    references: Sequence[str | Sequence[str | Reference] | None] | None = None,
    contexts: Sequence[str | Sequence[Any] | None] | None = None,
    systems: str | Sequence[str | None] | None = None,
    ids: Sequence[str | int] | None = None,
    ratings: Sequence[Any] | None = None,
) -> list[Item]:
    """Return one item for each reply; all lists are as long as ``replies``.

    References of a reply are one text or a list; a context is one text (a turn a line), a list of
    turns, or chat messages; ``systems`` may be one name for all. Without ``ids``, items are
    numbered from 0.
    """
    arguments: dict[str, Any] = {
        "replies": replies,
        "references": references,
        "contexts": contexts,
        "systems": None if isinstance(systems, str) else systems,
        "ids": ids,
        "ratings": ratings,
    }
    columns: dict[str, Sequence[Any]] = {}
    for name, values in arguments.items():
        if values is None:
            continue
        is_table = hasattr(values, "columns") or hasattr(values, "column_names")
        if (
            isinstance(values, (str, bytes, Mapping))
            or not isinstance(values, Iterable)
            or is_table
        ):
            kind = "one text" if isinstance(values, str) else type(values).__name__
            raise UsageError(f"{name}: expected a list with an entry for each reply; got {kind}")
        columns[name] = list(values)
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{count} {name}" for name, count in lengths.items())
        raise UsageError(f"expected lists of the same length; got {counts}")
    if "replies" not in columns:
        raise UsageError("replies: expected a list of texts, got None")
    return [
        convert_item(
            f"reply {number}",
            item_from,
            _record(number, {name: values[number] for name, values in columns.items()}, systems),
        )
        for number in range(lengths["replies"])
    ]


def _record(number: int, row: dict[str, Any], systems: Any) -> dict[str, Any]:
    record: dict[str, Any] = {"id": row.get("ids", number), "response": row["replies"]}
    if (context := row.get("contexts")) is not None:
        # whatever is no text and no list is named in the error
        record["context"] = context if _is_one(context) else list(context)
    if (references := row.get("references")) is not None:
        several = [references] if _is_one(references) else list(references)
        record["references"] = [
            msgspec.structs.asdict(each) if isinstance(each, Reference) else each
            for each in several
        ]
    system = systems if isinstance(systems, str) else row.get("systems")
    if system is not None:
        record["system"] = system
    if row.get("ratings") is not None:
        record["ratings"] = row["ratings"]
    return record


def _is_one(value: Any) -> bool:
    return isinstance(value, (str, Reference, Mapping)) or not isinstance(value, Iterable)
