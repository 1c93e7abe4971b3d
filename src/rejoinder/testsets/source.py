"""Locate and read the files of the data folder; shared by all loaders.

A file is checked against the digest of the release that its loader was written for: another
release would silently give other numbers under the same name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rejoinder.errors import DataError, MissingExtra
from rejoinder.files.paths import file_digest, is_file
from rejoinder.items import Item, Reference

VARIABLE = "REJOINDER_DATA"


@dataclass(frozen=True)
class File:
    """One raw file below the data folder."""

    path: str
    sha256: str
    origin: str
    """Its name at the public source, or the file that it was made from."""


class Row(NamedTuple):
    """An item without references, and the texts that may become its references."""

    item: Item
    single: list[str]
    multi: list[str]
    scored: Sequence[Reference] = ()
    """Good and bad references, with weights."""


def locate(file: File, dataset: str, source: str) -> Path:
    """Return the path of a file in the data folder, after checking its digest."""
    description = f"{file.path} ({file.origin}, from {source})"
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise MissingExtra(
            f"{dataset}: {VARIABLE} is not set; set it to a folder that holds {description}"
        )
    path = Path(folder) / file.path
    if not is_file(path):
        raise MissingExtra(f"{dataset}: {VARIABLE} is {folder}, which lacks {description}")
    digest = file_digest(path).hex()
    if digest != file.sha256:
        raise DataError(
            "this is another version of the file:"
            f" expected sha256 {file.sha256[:8]}…, found {digest[:8]}…",
            path=str(path),
        )
    return path


def text_lines(stream: Iterable[bytes], name: str) -> Iterator[tuple[int, str]]:
    """Yield numbered lines without their line ends.

    Splits at newlines only: ``str.splitlines`` also splits at characters that occur inside
    replies, and the lines of two files would not match any more.
    """
    for number, line in enumerate(stream, 1):
        try:
            yield number, line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise DataError("the line is not UTF-8", path=name, line=number) from None
