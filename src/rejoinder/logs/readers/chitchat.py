"""``chitchat``: the chats of the package ``chitchat-dataset``, or of a file in its format.

The document is one JSON object that maps chat ids to messages, so it is read as a whole (40 MB),
and the line of a post is the number of its chat. A message is a list of consecutive texts of its
sender.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import msgspec

from rejoinder.errors import missing_extra
from rejoinder.files.jsonl import explain
from rejoinder.files.paths import open_input
from rejoinder.logs.readers.lines import Chunk
from rejoinder.logs.readers.reader import BadRecord, Post, Reader, Turn, dialogue, rejected
from rejoinder.logs.readers.times import BadTime, microseconds

PACKAGE = frozenset({"package", "chitchat", "chitchat-dataset"})
"""Names of inputs that stand for the installed package."""


class _Typed(msgspec.Struct, gc=False):
    text: str
    sender: str
    timestamp: str | None = None


class _Chat(msgspec.Struct, gc=False):
    messages: list[list[_Typed]]


@dataclass(frozen=True, kw_only=True)
class Chitchat(Reader):
    name: ClassVar[str] = "chitchat"
    summary: ClassVar[str] = "the package chitchat-dataset; the input is 'chitchat-dataset'"
    kind: ClassVar[str] = "dialogue"
    splittable: ClassVar[bool] = False

    def chunk(self, path: str, size: int = 0) -> list[Chunk]:
        open_input(_file(path)).close()
        return [Chunk(path)]

    def records(self, chunk: Chunk) -> Iterator[Post]:
        source = chunk.path
        with open_input(_file(source)) as file:
            document = file.read()
        try:
            chats = msgspec.json.decode(document, type=dict[str, msgspec.Raw])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            reason = (
                f"not a JSON object of chats ({error}); expected the dataset.json of the package"
            )
            yield rejected(source, 1, reason, document[:2000])
            return
        for number, raw in enumerate(chats.values(), 1):
            try:
                chat = msgspec.json.decode(raw, type=_Chat)
                posts = dialogue(_turns(chat), source, number)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                posts = [rejected(source, number, explain(str(error)), bytes(raw))]
            except (BadRecord, BadTime) as error:
                posts = [rejected(source, number, str(error), bytes(raw))]
            yield from posts


def _turns(chat: _Chat) -> Iterator[Turn]:
    for message in chat.messages:
        for typed in message:
            time = None if typed.timestamp is None else microseconds(typed.timestamp)
            yield Turn(typed.text, typed.sender, time)


def _file(path: str) -> str:
    if path not in PACKAGE:
        return path
    spec = find_spec("chitchat_dataset")
    if spec is None or spec.origin is None:
        raise missing_extra("chitchat", "chitchat-dataset", task="the format chitchat")
    return str(Path(spec.origin).with_name("dataset.json"))
