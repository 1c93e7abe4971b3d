"""Read the tasks of the training round and of the entrance test, whose answers are known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from rejoinder.files.jsonl import JsonLines


class KnownRecord(msgspec.Struct, forbid_unknown_fields=True):
    """A line of ``training.jsonl`` or ``test.jsonl``."""

    expected: Any
    """The right answers, in the form that the kind of task documents."""
    context: list[str] = []
    replies: list[str] = []
    explanation: str = ""
    """Shown after the answer, in the training round."""


def read_known(path: str) -> Iterator[tuple[int, KnownRecord]]:
    """Yield line number and record of each task."""
    lines = JsonLines(path)
    empty = True
    for number, record in lines.decode(lambda each: msgspec.convert(each, KnownRecord)):
        empty = False
        yield number, record
    if empty:
        raise lines.wrong(None, "the file is empty; expected tasks, one JSON object per line")
