"""``chat``: logs of chat-completion services, one conversation a line.

A line is an object with ``messages``, or the list of messages itself; a message has ``role`` and
``content``. The ShareGPT form (``conversations`` of ``from`` and ``value``) is read as well. What
the user and the assistant said are the turns; instructions and tool calls are skipped. Roles are
different people in every conversation.

``learn_from`` chooses whose turns become responses of pairs: ``user`` (default), ``assistant`` or
``all``. The others are context only. An evaluator that has learnt from a bot's own replies scores
that bot high for being itself, whatever the replies are worth; so what an assistant said is learnt
only on request, for example from a log in which people wrote the assistant's turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from rejoinder.logs.readers.reader import BadRecord, JsonReader, Post, Turn, anonymous, dialogue
from rejoinder.logs.readers.times import microseconds

USER, ASSISTANT, ALL = "user", "assistant", "all"
LEARN_FROM = (USER, ASSISTANT, ALL)

ROLES = {
    "user": USER,
    "human": USER,
    "assistant": ASSISTANT,
    "model": ASSISTANT,
    "bot": ASSISTANT,
    "gpt": ASSISTANT,
    "ai": ASSISTANT,
    "chatbot": ASSISTANT,
}
"""Names of the two roles."""
_SKIPPED = frozenset({"system", "developer", "tool", "function"})


class _Part(msgspec.Struct, gc=False):
    type: str
    text: str | None = None


class _Message(msgspec.Struct, gc=False):
    role: str | None = None
    content: str | list[_Part] | None = None
    sender: str | None = msgspec.field(default=None, name="from")
    value: str | None = None


class _Chat(msgspec.Struct, gc=False):
    messages: list[_Message] | None = None
    conversations: list[_Message] | None = None
    created: str | int | float | None = None


@dataclass(frozen=True, kw_only=True)
class Chat(JsonReader):
    name: ClassVar[str] = "chat"
    summary: ClassVar[str] = "chat-completion log, JSON lines with messages of role and content"
    kind: ClassVar[str] = "dialogue"
    record: ClassVar[Any] = _Chat | list[_Message]

    learn_from: str = USER
    """Whose turns are learnt as responses: user, assistant or all."""

    def __post_init__(self) -> None:
        check_learn_from(self.learn_from)

    def posts(self, record: _Chat | list[_Message], number: int, source: str) -> Iterable[Post]:
        chat = _Chat(record) if isinstance(record, list) else record
        messages = chat.conversations if chat.messages is None else chat.messages
        if messages is None:
            raise BadRecord("the field is missing: messages; expected a list of role and content")
        time = None if chat.created is None else microseconds(chat.created)
        return dialogue(self._turns(messages, number, source, time), source, number)

    def _turns(
        self, messages: list[_Message], number: int, source: str, time: int | None
    ) -> Iterator[Turn]:
        for place, message in enumerate(messages):
            role = message.sender if message.role is None else message.role
            if role is None:
                raise BadRecord(f"messages[{place}]: the role is missing; expected role, content")
            if role in _SKIPPED:
                continue
            if role not in ROLES:
                raise BadRecord(
                    f"messages[{place}].role: {role[:40]!r}; expected user or assistant,"
                    f" or one that is skipped: {', '.join(sorted(_SKIPPED))}"
                )
            learn = self.learn_from in (ALL, ROLES[role])
            speaker = anonymous(source, number, ROLES[role])
            yield Turn(_text(message), speaker, time, learn)


def check_learn_from(role: str) -> None:
    """Raise ValueError for a role that can't be chosen."""
    if role not in LEARN_FROM:
        raise ValueError(f"learn_from={role} is not one of {', '.join(LEARN_FROM)}")


def _text(message: _Message) -> str:
    content = message.value if message.content is None else message.content
    if isinstance(content, list):
        return " ".join(part.text for part in content if part.text and "text" in part.type)
    return content or ""
