"""Inaba 2019: contexts of a Japanese message board, each with its true reply and nine random ones.

The files are plain tab-separated text (label, turns, reply) without quoting. ``__BR__`` is a line
break of the post.

The set is for metrics without references: the only reference would be the true reply itself, which
would give the label away.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from rejoinder.errors import DataError
from rejoinder.items import Item
from rejoinder.testsets.source import Row, text_lines

_BREAK = re.compile(" *__BR__ *")


def dev(archive: Path) -> Iterator[Row]:
    """The 2,000 contexts for development."""
    return _read(archive, "ranking/dev.tsv")


def test(archive: Path) -> Iterator[Row]:
    """The 2,000 contexts for testing."""
    return _read(archive, "ranking/test.tsv")


def _read(archive: Path, member: str) -> Iterator[Row]:
    name = f"{archive}/{member}"
    try:
        with zipfile.ZipFile(archive) as files, files.open(member) as stream:
            yield from _rows(text_lines(stream, name), name)
    except (zipfile.BadZipFile, KeyError) as error:
        raise DataError(f"not the expected zip archive ({error})", path=str(archive)) from None


def _rows(lines: Iterator[tuple[int, str]], name: str) -> Iterator[Row]:
    group, candidate = 0, 0
    current: list[str] = []
    for number, line in lines:
        label, *turns = line.split("\t")
        if label not in ("0", "1") or len(turns) < 2:
            raise DataError(
                "expected the label 0 or 1, a context and a reply, separated by tabs",
                path=name,
                line=number,
            )
        *context, reply = (_BREAK.sub("\n", turn).strip() for turn in turns)
        if label == "1":
            group, candidate, current = group + 1, 0, context
        elif context != current:
            raise DataError(
                "the context is not that of the true reply before it", path=name, line=number
            )
        else:
            candidate += 1
        item = Item(
            id=f"{group}:true" if label == "1" else f"{group}:random-{candidate}",
            response=reply,
            context=context,
            system="true" if label == "1" else "random",
            ratings=float(label),
            context_id=str(group),
        )
        yield Row(item, [], [])
