"""Word messages for their reader: flags on the command line, parameters in Python.

The functions of the package name a parameter with :func:`option`; the command line, which is the
only one to enter :func:`for_command_line`, then shows its flag.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

FLAGS = {
    "all_items": "--all",
    "annotators": "--annotator",
    "count": "-n",
    "dimensions": "--dimension",
    "labels": "--label",
    "metrics": "--metric",
    "drop_annotators": "--drop-annotator",
    "output": "-o",
    "own_systems": "--own-system",
    "overrides": "--set",
    "question": "--for",
    "systems": "--system",
    "variables": "--set",
}
"""Flags of parameters that have another name on the command line."""

_on_command_line = False


@contextmanager
def for_command_line() -> Iterator[None]:
    """Word the messages of the enclosed calls for the command line."""
    global _on_command_line
    before, _on_command_line = _on_command_line, True
    try:
        yield
    finally:
        _on_command_line = before


def option(name: str, value: object = None) -> str:
    """Return a parameter, with its value if there is one, as the reader would write it.

    True turns a switch on; a mapping is ``KEY=VALUE,…`` on the command line.

    >>> option("any_language", True), option("columns", {"system": "bot"})
    ('any_language=True', "columns={'system': 'bot'}")
    >>> with for_command_line():
    ...     option("any_language", True), option("columns", {"system": "bot"})
    ('--any-language', '--columns system=bot')
    """
    if not _on_command_line:
        return f"{name}=" if value is None else f"{name}={value!r}"
    flag = FLAGS.get(name, f"--{name.replace('_', '-')}")
    if value is None or value is True:
        return flag
    if isinstance(value, Mapping):
        value = ",".join(f"{key}={each}" for key, each in value.items())
    return f"{flag} {shlex.quote(str(value))}"


def choose(*, command_line: str, python: str) -> str:
    """Return the text for the reader: a whole command, or a call of Python."""
    return command_line if _on_command_line else python
