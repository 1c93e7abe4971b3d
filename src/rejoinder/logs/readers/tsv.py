"""``tsv``: one dialogue a line, turns separated by tabs, speakers alternate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from rejoinder.logs.readers.reader import LineReader, Post, Turn, dialogue


@dataclass(frozen=True, kw_only=True)
class Tsv(LineReader):
    name: ClassVar[str] = "tsv"
    summary: ClassVar[str] = "a dialogue a line, turns separated by tabs"
    kind: ClassVar[str] = "dialogue"

    def parse(self, line: bytes, number: int, source: str) -> Iterable[Post]:
        return dialogue((Turn(text) for text in line.decode().split("\t")), source, number)
