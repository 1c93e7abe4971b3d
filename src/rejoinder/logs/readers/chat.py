"""``chat``: logs of chat-completion services, a conversation a line as ``messages``.

What the user and the assistant said are the turns; instructions and tools are no dialogue. Roles
are somebody else in every conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from rejoinder.logs.readers.base import BadRecord, JsonReader, Post, Turn, anonymous, dialogue
from rejoinder.logs.readers.times import microseconds

_SPEAK = {"user": "user", "human": "user", "assistant": "assistant", "model": "assistant"}
_SILENT = frozenset({"system", "developer", "tool", "function"})


class _Part(msgspec.Struct, gc=False):
    type: str
    text: str | None = None


class _Message(msgspec.Struct, gc=False):
    role: str
    content: str | list[_Part] | None = None


class _Chat(msgspec.Struct, gc=False):
    messages: list[_Message]
    created: str | int | float | None = None


@dataclass(frozen=True, kw_only=True)
class Chat(JsonReader):
    name: ClassVar[str] = "chat"
    summary: ClassVar[str] = "chat-completion log, JSON lines with messages of role and content"
    kind: ClassVar[str] = "dialogue"
    record: ClassVar[Any] = _Chat

    def posts(self, record: _Chat, number: int, source: str) -> Iterable[Post]:
        time = None if record.created is None else microseconds(record.created)
        return dialogue(_turns(record, number, source, time), source, number)


def _turns(record: _Chat, number: int, source: str, time: int | None) -> Iterator[Turn]:
    for place, message in enumerate(record.messages):
        if message.role in _SILENT:
            continue
        if message.role not in _SPEAK:
            raise BadRecord(
                f"messages[{place}].role: {message.role[:40]!r}; expected user or assistant,"
                f" or one that is skipped: {', '.join(sorted(_SILENT))}"
            )
        speaker = anonymous(source, number, _SPEAK[message.role])
        yield Turn(_text(message.content), speaker, time)


def _text(content: str | list[_Part] | None) -> str:
    if isinstance(content, list):
        return " ".join(part.text for part in content if part.text and "text" in part.type)
    return content or ""
