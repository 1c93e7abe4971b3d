"""``self-dialogue``: dialogues in which one worker wrote both sides.

The sides become the authors ``worker#A`` and ``worker#B``; otherwise all turns would be merged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from rejoinder.logs.readers.reader import JsonReader, Post, Turn, dialogue
from rejoinder.logs.readers.times import microseconds


class _Dialogue(msgspec.Struct, gc=False):
    worker: str
    turns: list[str]
    submitted: str | None = None


@dataclass(frozen=True, kw_only=True)
class SelfDialogue(JsonReader):
    name: ClassVar[str] = "self-dialogue"
    summary: ClassVar[str] = "the Self-dialogue Corpus, JSON lines with worker and turns"
    kind: ClassVar[str] = "dialogue"
    record: ClassVar[Any] = _Dialogue

    def posts(self, record: _Dialogue, number: int, source: str) -> Iterable[Post]:
        time = None if record.submitted is None else microseconds(record.submitted)
        sides = (f"{record.worker}#A", f"{record.worker}#B")
        turns = [Turn(text, sides[i % 2], time) for i, text in enumerate(record.turns)]
        return dialogue(turns, source, number)
