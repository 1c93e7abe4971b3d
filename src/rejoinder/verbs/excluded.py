"""Notes on the test sets that ``corpus`` and ``fit`` leave out."""

from __future__ import annotations

from collections.abc import Iterable

from rejoinder.files.item_file import ItemFile, file_format, read_items
from rejoinder.verbs.monitor import Monitor


def note_columns(paths: Iterable[str], monitor: Monitor) -> None:
    """Report which columns of excluded tables were recognised: a context that is not one would
    leave nothing out."""
    for path in paths:
        if file_format(path) in ("csv", "tsv"):
            file = ItemFile(path, on_note=monitor.note, hints=False, with_ratings=False)
            next(iter(read_items(file)), None)
