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
    seen: dict[tuple[Any, ...], str] = {}
    with open_output(output) as stream:
        for file in files:
            source = JsonLines(file)
            for number, record in source.decode(dict):
                key = tuple(record.get(name) for name in ("id", "metric", "level", "system"))
                if None in key[:1]:
                    raise source.wrong(number, "the field is missing: id")
                if record.get("metric") is None:
                    key = key[:1]
                where = f"{source.name}:{number}"
                if key in seen:
                    raise source.wrong(number, f"'{record['id']}' stands in {seen[key]} already")
                seen[key] = where
                write_jsonl(stream, [record])
    say(f"{output}: {len(seen):,} lines")
