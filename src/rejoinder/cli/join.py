"""``rejoinder join``: files of items, or of scores, one after the other in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rejoinder.cli.common import check_output, say


def join(
    files: Annotated[list[str], typer.Argument(metavar="FILES…", help="JSONL, .gz or .zst.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the lines go.")
    ],
) -> None:
    """Put items together, or scores: replies of several systems, runs of 'score'.

    An item stands once, and so does a metric's score of an item.
    """
    from rejoinder.io import JsonLines, open_output, write_jsonl

    check_output(output, files)
    seen: dict[tuple[str, ...], str] = {}
    with open_output(output) as stream:
        for file in files:
            source = JsonLines(file)
            for number, record in source.decode(dict):
                if not isinstance(record.get("id"), str | int):
                    raise source.wrong(number, "expected a text in the field id")
                key = _key(record)
                if key in seen:
                    raise source.wrong(number, f"'{record['id']}' stands in {seen[key]} already")
                seen[key] = f"{source.name}:{number}"
                write_jsonl(stream, [record])
    say(f"{output}: {len(seen):,} lines")


def _key(record: dict[str, Any]) -> tuple[str, ...]:
    """What may stand once: an item, or a metric's score of it. A number names what its digits name,
    as it does where items are read."""
    name = str(record["id"])
    if record.get("metric") is None:
        return (name,)
    level, system = record.get("level", "item"), record.get("system")
    return name, str(record["metric"]), str(level), str(system)
