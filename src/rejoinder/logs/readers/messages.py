"""``messages``: one message a line, with ``dialogue_id``, ``speaker``, ``text`` and ``time``.

Messages of several dialogues may be interleaved, so ``turn`` and ``parent`` stay empty: the
pipeline orders the messages of a dialogue by (time, line) and merges consecutive messages of one
speaker.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from rejoinder.logs.readers.reader import JsonReader, Post
from rejoinder.logs.readers.times import microseconds


class _Message(msgspec.Struct, gc=False):
    dialogue_id: str | int
    speaker: str | int
    text: str
    time: str | int | float | None = None


@dataclass(frozen=True, kw_only=True)
class Messages(JsonReader):
    name: ClassVar[str] = "messages"
    summary: ClassVar[str] = "message log, JSON lines with dialogue_id, speaker, text, time"
    kind: ClassVar[str] = "dialogue"
    record: ClassVar[Any] = _Message

    local: bool = False
    """Whether speakers are roles ("user", "bot"), which are other people in every dialogue."""

    def posts(self, record: _Message, number: int, source: str) -> Iterable[Post]:
        author = f"{record.dialogue_id}#{record.speaker}" if self.local else str(record.speaker)
        return [
            Post(
                source,
                number,
                record.text,
                id=str(number),
                thread=str(record.dialogue_id),
                author=author,
                time=None if record.time is None else microseconds(record.time),
            )
        ]
