"""Fill the slots of a study template, and change settings in its text without losing comments.

``{{name}}`` stands for a value and is replaced by it, written as TOML; a line
``{{include FILE}}`` is replaced by a file that several templates share.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rejoinder.annotate.settings_file import Path_, key_lines

_INCLUDE = re.compile(r"^\{\{include ([\w.-]+)\}\}$", re.MULTILINE)
_SLOT = re.compile(r"\{\{(\w+)\}\}")


def include(text: str, read: Callable[[str], str]) -> str:
    """Return a text with the files that it includes."""
    return _INCLUDE.sub(lambda found: read(found[1]).rstrip("\n"), text)


def fill(text: str, values: Mapping[str, Any]) -> str:
    """Return a text whose slots are filled with values.

    >>> fill("labels = {{labels}}", {"labels": ["bad", 'so "good"']})
    'labels = ["bad", "so \\\\"good\\\\""]'
    """
    return _SLOT.sub(lambda found: toml_value(values[found[1]]), text)


def slots(text: str) -> set[str]:
    """Return the names of the slots of a text."""
    return set(_SLOT.findall(text))


def toml_value(value: Any) -> str:
    """Return a text, number, truth value or list as TOML."""
    if isinstance(value, str):
        value.encode()  # the file will be UTF-8
        # the escapes of JSON are those of TOML, which also forbids the character DEL
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml_value, value))}]"
    raise TypeError(f"expected text, a number, true, false or a list, got {type(value).__name__}")


def setting_path(name: str) -> Path_:
    """Return the keys of a setting that is named as in messages.

    >>> setting_path("rate.dimensions[0].question")
    ('rate', 'dimensions', 0, 'question')
    """
    parts = re.findall(r"[^.\[\]]+", name)
    return tuple(int(part) if part.isdecimal() else part for part in parts)


def setting_lines(text: str) -> dict[Path_, int]:
    """Return the settings of a TOML text that stand in a line of their own, with the line."""
    lines = text.splitlines()
    return {
        path: number
        for path, number in key_lines(text).items()
        if not lines[number - 1].startswith("[")
    }


def change_settings(text: str, changes: Iterable[tuple[Path_, Any]]) -> str:
    """Return a TOML text with other values of some settings; a comment keeps the old ones."""
    lines = text.splitlines()
    numbers = setting_lines(text)
    for path, value in changes:
        line = numbers[path] - 1
        lines[line] = f"# In the template: {lines[line]}\n{path[-1]} = {toml_value(value)}"
    return "\n".join(lines) + "\n"
