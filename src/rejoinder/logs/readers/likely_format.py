"""Guess the format of a log from its first record, for error messages."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import msgspec

from rejoinder.errors import DataError
from rejoinder.files.compressed import DAMAGE, decompressed, is_compressed
from rejoinder.files.paths import open_regular
from rejoinder.logs.readers.messages import is_table

_FIRST_BYTES = 2**20


def likely_format(path: str) -> str | None:
    """Return the name of the format that a log seems to have; None if nothing is like it."""
    try:
        if is_table(path):
            return "messages"
        with ExitStack() as stack:
            raw = stack.enter_context(open_regular(path))
            stream = decompressed(raw, path) if is_compressed(path) else raw
            line = stream.readline(_FIRST_BYTES)
        if b"__eou__" in line:
            return "dailydialog"
        return _of_record(msgspec.json.decode(line.removeprefix(b"\xef\xbb\xbf")))
    except (DataError, *DAMAGE, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _of_record(record: Any) -> str | None:
    if isinstance(record, list):
        return "chat" if record and isinstance(record[0], dict) and "role" in record[0] else None
    if not isinstance(record, dict):
        return None
    for name, fields in (
        ("chat", {"messages"}),
        ("chat", {"conversations"}),
        ("messages", {"dialogue_id", "speaker", "text"}),
        ("dailydialog-plusplus", {"positive_responses"}),
        ("empatheticdialogues", {"turns", "emotion"}),
        ("reddit", {"subreddit", "author"}),
        ("twitter", {"created_at", "user"}),
        ("twitter", {"created_at", "author_id"}),
    ):
        if fields <= record.keys():
            return name
    return None
