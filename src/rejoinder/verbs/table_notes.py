"""Notes on what was guessed about files that ``corpus`` and ``fit`` read."""

from __future__ import annotations

from collections.abc import Iterable

from rejoinder.files.item_file import ItemFile, file_format, read_items
from rejoinder.files.paths import is_file
from rejoinder.logs.readers.messages import Messages
from rejoinder.logs.readers.reader import Reader
from rejoinder.verbs.monitor import Monitor


def note_excluded_columns(paths: Iterable[str], monitor: Monitor) -> None:
    """Report which columns of excluded tables were recognised: a context that is not one would
    leave nothing out."""
    for path in paths:
        if file_format(path) in ("csv", "tsv"):
            file = ItemFile(path, on_note=monitor.note, hints=False, with_ratings=False)
            next(iter(read_items(file)), None)


def note_guesses(paths: Iterable[str], reader: Reader, monitor: Monitor) -> None:
    """Report which columns of logs were recognised, and which speakers were taken for roles."""
    if isinstance(reader, Messages):
        for path in paths:
            for note in reader.notes(path) if is_file(path) else ():
                monitor.note(note)
