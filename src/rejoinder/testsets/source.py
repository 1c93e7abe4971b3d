"""From a data folder to rows: what all loaders share.

A file is checked against the digest of the one the loaders were written for. A silently
newer release would give other numbers under the same name.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rejoinder.errors import DataError, MissingExtra
from rejoinder.items import Item, Reference

VARIABLE = "REJOINDER_DATA"


@dataclass(frozen=True)
class File:
    """One raw file below the data folder."""

    path: str
    sha256: str
    origin: str
    """What it is called, or made from, at the public source."""


class Row(NamedTuple):
    """An item still without references, and what may become them."""

    item: Item
    single: list[str]
    multi: list[str]
    scored: Sequence[Reference] = ()
    """Good and bad ones, with weights."""


def locate(file: File, dataset: str, source: str) -> Path:
    """The file's place in the data folder, once it is known to be the right file."""
    whence = f"{file.path} ({file.origin}, from {source})"
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise MissingExtra(
            f"{dataset}: {VARIABLE} is not set; set it to a folder that holds {whence}"
        )
    path = Path(folder) / file.path
    if not path.is_file():
        raise MissingExtra(f"{dataset}: {VARIABLE} is {folder}, which lacks {whence}")
    try:
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError(f"cannot be read: {reason}", path=str(path)) from None
    if found != file.sha256:
        raise DataError(
            "this is not the file that was checked:"
            f" expected sha256 {file.sha256[:8]}…, found {found[:8]}…",
            path=str(path),
        )
    return path


def text_lines(stream: Iterable[bytes], name: str) -> Iterator[tuple[int, str]]:
    """Numbered lines without their ends.

    Splits at newlines only: ``str.splitlines`` also splits at characters that stand inside
    a reply, and the lines of two files would fall out of step.
    """
    for number, line in enumerate(stream, 1):
        try:
            yield number, line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise DataError("the line is not UTF-8", path=name, line=number) from None
