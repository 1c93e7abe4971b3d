"""Read a TOML file into settings, and report all of its problems at once, each with its line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from rejoinder.errors import DataError
from rejoinder.files.checked import MAX_TOML_BYTES, read_bytes
from rejoinder.files.jsonl import explain
from rejoinder.spec import did_you_mean

T = TypeVar("T", bound=msgspec.Struct)
Path_ = tuple[str | int, ...]
Problem = tuple[Path_, str]
"""Where in the file, as keys and numbers of tables, and what is wrong."""


class SettingsProblems(DataError):
    """Everything that is wrong with a settings file, one line each."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))


class SettingsFile:
    """The text of a TOML file, its tables, and the line of each key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.text = read_bytes(path, MAX_TOML_BYTES).decode()
        except UnicodeDecodeError:
            raise DataError("the file is not UTF-8", path=str(path)) from None
        try:
            self.table: dict[str, Any] = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            raise DataError(f"broken TOML: {error}", path=str(path)) from None
        except (RecursionError, ValueError) as error:
            raise DataError(f"broken TOML: {error}", path=str(path)) from None
        self._lines = key_lines(self.text)

    def check(self, problems: list[Problem]) -> None:
        """Raise :class:`SettingsProblems` if there are any, in the order of the lines."""
        if problems:
            ordered = sorted(problems, key=lambda problem: self.line(problem[0]) or 0)
            raise SettingsProblems([self._describe(*problem) for problem in ordered])

    def _describe(self, path: Path_, message: str) -> str:
        line = self.line(path)
        where = f"{self.path}:{line}" if line is not None else str(self.path)
        return f"{where}: {setting_name(path)}: {message}" if path else f"{where}: {message}"

    def line(self, path: Path_) -> int | None:
        """Return the line of a key, or of the nearest table around it."""
        while path:
            if path in self._lines:
                return self._lines[path]
            path = path[:-1]
        return None


def convert_table(
    table: Mapping[str, Any], type: type[T], path: Path_, problems: list[Problem]
) -> T | None:
    """Convert a table to a struct, field by field.

    What is wrong is added to the problems and left at its default, so that the rest can be checked,
    too; None if it has no default.
    """
    hints = get_type_hints(type)
    required = {field.name for field in msgspec.structs.fields(type) if field.required}
    for key in table:
        if key not in hints:
            problems.append(((*path, key), f"unknown setting; {did_you_mean(key, list(hints))}"))
    values: dict[str, Any] = {}
    for name, kind in hints.items():
        if name in table:
            value = _convert(table[name], kind, (*path, name), problems)
            if value is not _WRONG:
                values[name] = value
        elif name in required:
            problems.append(((*path, name), "is missing"))
    return type(**values) if required <= values.keys() else None


_WRONG = object()


def _convert(value: Any, kind: Any, path: Path_, problems: list[Problem]) -> Any:
    """Return a value as its field needs it, or ``_WRONG``."""
    struct = _struct(kind)
    if struct is not None and isinstance(value, dict):
        converted = convert_table(value, struct, path, problems)
        return _WRONG if converted is None else converted
    if get_origin(kind) is list and isinstance(value, list):
        inner = _struct(get_args(kind)[0])
        if inner is not None:
            rows = []
            for number, row in enumerate(value):
                if isinstance(row, dict):
                    rows.append(convert_table(row, inner, (*path, number), problems))
                else:
                    problems.append(((*path, number), "expected a table"))
                    rows.append(None)
            return _WRONG if None in rows else rows
    if get_origin(kind) is Literal and isinstance(value, str) and value not in get_args(kind):
        problems.append((path, f"unknown value '{value}'; {did_you_mean(value, get_args(kind))}"))
        return _WRONG
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        problems.append((path, explain(str(error))))
        return _WRONG


def further_problems(found: Sequence[Problem], more: Iterable[Problem]) -> list[Problem]:
    """Return the problems that may not merely follow from one that was found before.

    >>> further_problems([(("a", "b"), "")], [(("a",), ""), (("a", "b", 0), ""), (("a", "c"), "")])
    [(('a', 'c'), '')]
    """
    return [
        (path, message)
        for path, message in more
        if not any(path[: len(known)] == known[: len(path)] for known, _ in found)
    ]


def _struct(kind: Any) -> type[Any] | None:
    """Return the struct in a type such as ``Rate | None``."""
    for each in (kind, *get_args(kind)):
        if isinstance(each, type) and issubclass(each, msgspec.Struct):
            return each
    return None


_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"\s*([\w-]+|\"[^\"]*\")\s*=")


def key_lines(text: str) -> dict[Path_, int]:
    """Return the line of each table and key of a TOML text; inline tables count as one key.

    >>> key_lines('a = 1\\n[[b]]\\nc = 2')
    {('a',): 1, ('b',): 2, ('b', 0): 2, ('b', 0, 'c'): 3}
    """
    lines: dict[Path_, int] = {}
    table: Path_ = ()
    counts: dict[Path_, int] = {}
    quoted: str | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if quoted is not None:  # inside a text of several lines
            if quoted in line:
                quoted = None
            continue
        if header := _HEADER.match(line):
            table = ()
            for name in header[2].split("."):
                table = (*table, name.strip().strip('"'))
                if table in counts and not (header[1] == "[[" and name is header[2]):
                    table = (*table, counts[table] - 1)
            if header[1] == "[[":
                base = table[:-1] if isinstance(table[-1], int) else table
                counts[base] = counts.get(base, 0) + 1
                lines.setdefault(base, number)
                table = (*base, counts[base] - 1)
            lines[table] = number
        elif key := _KEY.match(line):
            lines[*table, key[1].strip('"')] = number
            for quote in ('"""', "'''"):
                if line.count(quote) == 1:
                    quoted = quote
    return lines


def setting_name(path: Path_) -> str:
    """Return a path as people write it: rate.dimensions[1].scale."""
    name = ""
    for part in path:
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else part
    return name
