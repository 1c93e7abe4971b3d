"""Read an exported table whole."""

from __future__ import annotations

from rejoinder.files.jsonl import MAX_LINE_BYTES
from rejoinder.files.paths import AnyPath, open_regular
from rejoinder.files.tables import CsvRows


def read_table(path: AnyPath) -> list[tuple[int, dict[str, str]]]:
    """Return the rows of a CSV or TSV file with their lines, cells by the name of their column."""
    name = str(path)
    delimiter = "\t" if name.lower().endswith(".tsv") else None
    with open_regular(path) as stream:
        return list(CsvRows(stream, name, delimiter, MAX_LINE_BYTES))
