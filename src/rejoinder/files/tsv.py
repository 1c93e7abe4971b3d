"""Split a tab-separated file into cells, whether its writer put cells in quotes or not.

Spreadsheets and pandas put a cell in quotes if it contains a tab, a line break or a quote, and
write a quote inside it twice. Exports of chats and test sets write texts as they are, also those
that begin with a quote. A cell is taken for quoted if it is so from its first to its last
character. One that only begins with a quote is plain text, unless the quote must be an opening one,
because the line has another number of cells than the header. If both readings are possible, the
file is refused.
"""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Callable, Iterator

from rejoinder.errors import DataError

Lines = Iterator[tuple[int, str]]
Wrong = Callable[[int, str], DataError]

_QUOTED = re.compile(r'"([^"]*(?:""[^"]*)*)"')
_OPEN = re.compile(r'"[^"]*(?:""[^"]*)*')
"""A cell, or the part before a tab or line break, whose quote is not closed."""
_ESCAPED = re.compile(r'"(?=.*\\")(?:[^"\\]|\\.)*"')
"""A quoted cell with backslashes before its quotes, as R writes it."""


def tab_records(
    lines: Lines, width: int, max_characters: int, wrong: Wrong
) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of each row; ``width`` is the number of cells of the header."""
    waiting: deque[tuple[int, str]] = deque()

    def take() -> tuple[int, str] | None:
        return waiting.popleft() if waiting else next(lines, None)

    while (numbered := take()) is not None:
        number, line = numbered
        raw = _split(line)
        if '"' not in line:
            yield number, raw
            continue
        if not any(map(_OPEN.fullmatch, raw)):
            yield number, _texts(raw, number, wrong)
            continue
        used: list[tuple[int, str]] = []
        cells, problem = _read_quoted(line, take, used, max_characters)
        if cells is not None and _fits(cells, width):
            if all(_fits(_split(each), width) for each in (line, *(text for _, text in used))):
                last = used[-1][0] if used else number
                raise wrong(
                    number,
                    f"a quote opens a cell that ends in line {last}, but it may belong to"
                    f" the text, because each of these lines has {width} cells; if it belongs to"
                    " the text, put the cell in quotes and write it twice, otherwise convert the"
                    " file to CSV",
                )
            yield number, cells
        elif _fits(raw, width):
            waiting.extendleft(reversed(used))
            yield number, _texts(raw, number, wrong)
        elif cells is None:
            raise wrong(number, f"broken row: {problem}")
        else:
            yield number, cells  # a wrong number of cells, which the caller reports


def explain_csv(error: csv.Error) -> str:
    """Return what is wrong with quotes, in words."""
    if "unexpected end" in str(error):
        return "a quote is opened and never closed"
    if "expected after" in str(error):
        return "text follows a closing quote; a quote inside quotes is written twice"
    return str(error)


def _read_quoted(
    line: str,
    take: Callable[[], tuple[int, str] | None],
    used: list[tuple[int, str]],
    max_characters: int,
) -> tuple[list[str] | None, str]:
    """Read a row as a spreadsheet would, or return why that fails.

    The lines that were needed after the first are added to ``used``.
    """

    def lines() -> Iterator[str]:
        yield line
        size = len(line)
        while size <= max_characters and (more := take()) is not None:
            used.append(more)
            size += len(more[1])
            yield more[1]

    try:
        return next(csv.reader(lines(), delimiter="\t", strict=True)), ""
    except csv.Error as error:
        return None, explain_csv(error)


def _split(line: str) -> list[str]:
    return line.removesuffix("\n").removesuffix("\r").split("\t")


def _texts(raw: list[str], number: int, wrong: Wrong) -> list[str]:
    """Return the texts of the cells of one line."""
    if any(map(_ESCAPED.fullmatch, raw)):
        raise wrong(number, 'quotes inside a quoted cell are written \\"; expected ""')
    return [_unquoted(cell) for cell in raw]


def _unquoted(cell: str) -> str:
    """Return the text of a cell, without its quotes if it has them around it."""
    if cell[:1] == '"' and (match := _QUOTED.fullmatch(cell)):
        return match[1].replace('""', '"')
    return cell


def _fits(cells: list[str], width: int) -> bool:
    """Return whether a row has as many cells as the header; more may follow if they are empty."""
    return len(cells) >= width and not any(cells[width:])
