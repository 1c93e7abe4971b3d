"""Output of the command line: the two streams, tables, JSON."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console
    from rich.table import Table

    from rejoinder.verbs.results import Result

WIDTH = 80


def console(*, stderr: bool = False) -> Console:
    """Return a console for one of the streams: 80 columns wide unless it is a terminal."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else WIDTH
    # names and texts come from data: brackets in them are no markup
    return Console(
        stderr=stderr,
        width=width,
        highlight=False,
        markup=False,
        emoji=False,
        color_system=None if os.environ.get("NO_COLOR") else "auto",  # bold text is left out, too
    )


def printable(message: str) -> str:
    """Replace control characters: names and texts come from data, and could clear the window."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in message
    )


def say(message: str) -> None:
    """Write a message to stderr.

    On a terminal it is wrapped between words; elsewhere it stays in one line, for programs that
    look for it. A long path or signature is never cut.
    """
    out = console(stderr=True)
    text = printable(message)
    if out.is_terminal:
        import textwrap

        lines = textwrap.TextWrapper(out.width, break_long_words=False, break_on_hyphens=False)
        text = "\n".join(lines.fill(line) for line in text.split("\n"))
    out.print(text, soft_wrap=True)


def show(table: Table, *, stderr: bool = False) -> None:
    """Print a table below its title, which may be wider than the table itself.

    Titles and headers may have names from data in them: they stay in one line, without control
    characters, as the cells of the table do.
    """
    from rejoinder.reporting.tables import printable as one_line

    out = console(stderr=stderr)
    title, table.title = table.title, None
    if title is not None:
        out.print(one_line(str(title)))
    for column in table.columns:
        column.header = one_line(str(column.header))
    out.print(table)


def print_json(result: Result) -> None:
    """Print a result as JSON on stdout."""
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(result.to_dict()), indent=2)
    sys.stdout.buffer.write(text + b"\n")
    sys.stdout.buffer.flush()


def draw(path: Path, svg: str) -> None:
    """Write a picture."""
    from rejoinder.files.output import open_output

    with open_output(path) as stream:
        stream.write(svg.encode())
