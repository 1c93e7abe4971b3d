"""``join``: put files of items, or of scores, into one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rejoinder.errors import DataError
from rejoinder.files.jsonl import JsonLines, write_jsonl
from rejoinder.files.output import open_output
from rejoinder.files.paths import check_output
from rejoinder.verbs.results import Result


@dataclass(frozen=True)
class JoinResult(Result):
    """The number of lines that were written."""

    lines: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def join(files: Sequence[str | os.PathLike[str]], *, output: str | os.PathLike[str]) -> JoinResult:
    """Put items together, or scores: replies of several systems, runs of ``score``.

    An item may occur once, and so may a metric's score of an item.
    """
    names, target = [os.fspath(file) for file in files], Path(output)
    check_output(target, names)
    first: dict[tuple[str, ...], str] = {}
    with open_output(target) as stream:
        for name in names:
            source = JsonLines(name)
            for number, record in source.decode(dict):
                if not isinstance(record.get("id"), str | int):
                    raise source.wrong(number, "expected a text in the field id")
                key = _key(record)
                if key in first:
                    raise source.wrong(number, f"'{record['id']}' is already in {first[key]}")
                first[key] = f"{source.name}:{number}"
                write_jsonl(stream, [record])
        if not first:
            raise DataError("the file is empty; expected items, or scores", path=names[0])
    return JoinResult(len(first))


def _key(record: dict[str, Any]) -> tuple[str, ...]:
    """Return what must be unique: an item, or a metric's score of it.

    A numeric id is the same as its digits, as it is where items are read.
    """
    name = str(record["id"])
    if record.get("metric") is None:
        return (name,)
    level, system = record.get("level", "item"), record.get("system")
    return name, str(record["metric"]), str(level), str(system)
