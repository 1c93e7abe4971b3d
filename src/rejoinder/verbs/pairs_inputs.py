"""What the verbs of ``pairs`` read: candidates, and answers about them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rejoinder.errors import DataError
from rejoinder.files.item_file import read_items
from rejoinder.files.jsonl import JsonLines
from rejoinder.items import Item
from rejoinder.pairwise.answers import Comparisons, read_answers
from rejoinder.verbs.monitor import Monitor

if TYPE_CHECKING:
    from rejoinder.files.columns import Columns
    from rejoinder.files.paths import AnyPath


def stdin_twice(paths: Sequence[AnyPath]) -> list[str]:
    """Return the problem of several inputs that are stdin."""
    several = [os.fspath(path) for path in paths].count("-") > 1
    return ["only one input can be - (stdin)"] if several else []


def read_candidates(path: AnyPath, columns: Columns | None, monitor: Monitor) -> list[Item]:
    """Return the items of a file, some of which share a context."""
    items = list(read_items(os.fspath(path), columns, monitor.note))
    if len({item.group for item in items}) == len(items):
        raise DataError(
            "no two candidates reply to the same context, so there is nothing to compare;"
            " expected items that share a context_id, or the turns of their context",
            path=os.fspath(path),
        )
    return items


def read_comparisons(
    items: Sequence[Item], paths: Sequence[str], *, strict: bool, monitor: Monitor
) -> Comparisons:
    """Return the answers of files about these items."""
    sources = [JsonLines(path) for path in paths]

    def fraction() -> float | None:
        """Return the share of the file that is being read."""
        return next((s.fraction for s in sources if s.fraction is not None), None)

    with monitor.stream("reading", fraction) as advance:
        return read_answers(items, sources, strict=strict, on_progress=advance)
