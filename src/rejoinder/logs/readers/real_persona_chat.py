"""``real-persona-chat``: Japanese chats between people with short pseudonyms.

An unknown time is ``NaT`` in the data. Two ids occur twice, so the line is the id of a dialogue.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from rejoinder.logs.readers.reader import JsonReader, Post, Turn, dialogue
from rejoinder.logs.readers.times import microseconds


class _Turn(msgspec.Struct, gc=False):
    speaker: str
    text: str
    time: str | None = None


class _Chat(msgspec.Struct, gc=False):
    turns: list[_Turn]


@dataclass(frozen=True, kw_only=True)
class RealPersonaChat(JsonReader):
    name: ClassVar[str] = "real-persona-chat"
    summary: ClassVar[str] = "RealPersonaChat, JSON lines with turns of speaker, text and time"
    kind: ClassVar[str] = "dialogue"
    record: ClassVar[Any] = _Chat

    def posts(self, record: _Chat, number: int, source: str) -> Iterable[Post]:
        turns = [Turn(turn.text, turn.speaker, _time(turn.time)) for turn in record.turns]
        return dialogue(turns, source, number)


def _time(time: str | None) -> int | None:
    return None if time is None or time == "NaT" else microseconds(time)
