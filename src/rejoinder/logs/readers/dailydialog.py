"""``dailydialog``: a dialogue a line, each turn ended by ``__eou__``, speakers alternate.

XDailyDialog adds topic, acts and emotions after a tab behind the last turn; they are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from rejoinder.logs.readers.reader import BadRecord, LineReader, Post, Turn, dialogue

END = "__eou__"


@dataclass(frozen=True, kw_only=True)
class DailyDialog(LineReader):
    name: ClassVar[str] = "dailydialog"
    summary: ClassVar[str] = "DailyDialog text, a dialogue a line, turns ended by __eou__"
    kind: ClassVar[str] = "dialogue"

    def parse(self, line: bytes, number: int, source: str) -> Iterable[Post]:
        *turns, rest = line.decode().split(END)
        if not turns:
            raise BadRecord(f"no {END} in the line; expected every turn to end with it")
        last, *_ = rest.split("\t")
        return dialogue(map(Turn, [*turns, last]), source, number)
