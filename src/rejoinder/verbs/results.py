"""Base classes of the results that the verbs return.

``to_dict()`` is what the command line prints with ``--json``; ``frame()`` a table of pandas,
polars, pyarrow or datasets; a notebook shows ``_repr_html_()``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rejoinder.inputs.frames import make_frame

FrameColumns = dict[str, list[Any]]

MAX_ROWS = 20
"""Rows of a table that ``print(result)`` shows."""


class Result(ABC):
    """The result of a verb."""

    notes: Sequence[str] = ()
    """Notes and warnings: what was guessed, ignored or replaced, and what lowers the worth of the
    results. Those that matter are Python warnings, too (``rejoinder.RejoinderWarning``)."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return everything that the command line prints, as plain dictionaries and lists."""

    def __str__(self) -> str:
        named = flatten(self.to_dict()).items()
        single = {name: [value] for name, value in named if not isinstance(value, (list, tuple))}
        return f"{type(self).__name__}\n{text_table(single)}"

    def _repr_html_(self) -> str:
        return html_table(records_to_columns([flatten(self.to_dict())]))


class TableResult(Result):
    """A result with rows and columns."""

    frame_kind: str | None = None
    """Library of the frame that the items came in, such as "polars"."""

    @abstractmethod
    def columns(self) -> FrameColumns:
        """Return the columns of the frame as lists."""

    def frame(self, to: str | None = None) -> Any:
        """Return a frame of pandas, polars, pyarrow or datasets.

        By default it is of the library that the items came in; if they came in none, of the first
        of these that is installed.
        """
        return make_frame(self.columns(), to or self.frame_kind)

    def __str__(self) -> str:
        return f"{type(self).__name__}\n{text_table(self.columns())}"

    def _repr_html_(self) -> str:
        return html_table(self.columns())


class Svg(str):
    """A drawing that a notebook shows; ``str(drawing)`` is the SVG text."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def to_plain(value: Any) -> Any:
    """Convert dataclasses, structs and NumPy numbers to what JSON knows."""
    return msgspec.to_builtins(value, enc_hook=lambda number: number.item())


def records_to_columns(records: Sequence[Mapping[str, Any]]) -> FrameColumns:
    """
    >>> records_to_columns([{"a": 1, "b": 2}, {"a": 3}])
    {'a': [1, 3], 'b': [2, None]}
    """
    names = dict.fromkeys(name for record in records for name in record)
    return {name: [record.get(name) for record in records] for name in names}


def flatten(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested dictionaries as one level, with dots in the names.

    >>> flatten({"a": 1, "b": {"c": 2}})
    {'a': 1, 'b.c': 2}
    """
    flat: dict[str, Any] = {}
    for key, value in record.items():
        name = f"{prefix}{key}"
        flat |= flatten(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return flat


def text_table(columns: Mapping[str, Sequence[Any]], most: int = MAX_ROWS) -> str:
    """Return columns as a table of plain text; a single row is shown as names and values.

    >>> print(text_table({"system": ["hal", "eve"], "mean": [0.5, None]}))
    system  mean
    hal     0.5
    eve
    """
    rows = [list(map(_line, row)) for row in zip(*columns.values(), strict=True)]
    if len(rows) == 1:
        lines = [list(pair) for pair in zip(columns, rows[0], strict=True)]
    else:
        lines = [list(columns), *rows[:most]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    more = [f"… {len(rows) - most:,} more rows: frame() has all"] if len(rows) > most else []
    return "\n".join([*text, *more])


def html_table(columns: FrameColumns) -> str:
    """Return columns as an HTML table; a single row is shown as names and values."""
    from rejoinder.reporting.html import table_html

    rows = list(zip(*columns.values(), strict=True))
    if len(rows) == 1:
        return table_html(["", ""], zip(columns, map(_cell, rows[0]), strict=True))
    numeric = [
        place
        for place, column in enumerate(columns.values())
        if any(isinstance(value, (int, float)) for value in column)
    ]
    return table_html(list(columns), [list(map(_cell, row)) for row in rows], right=numeric)


def _line(value: Any) -> str:
    """Return a value on one line."""
    return "".join(c if c.isprintable() else " " for c in _cell(value))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
