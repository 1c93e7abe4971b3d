"""``dailydialog-plusplus``: a context a line, with several good replies to its last turn.

The good replies answer one and the same post, so that they share its ``utterance_id``: what a
rater learns from. Wrong replies, of which the files of DailyDialog++ have many, are never read.

A post is known by all that was said until then: where two contexts begin alike (28 with "May I
help you?"), what they share is one post with several answers, in one dialogue, and a split never
has a part of it on either side. Repetitions count as ``repeated-id``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar

import msgspec

from rejoinder.logs.readers.base import BadRecord, JsonReader, Post


class _Record(msgspec.Struct, gc=False):
    context: list[str]
    positive_responses: list[str]


@dataclass(frozen=True, kw_only=True)
class DailyDialogPlusPlus(JsonReader):
    name: ClassVar[str] = "dailydialog-plusplus"
    summary: ClassVar[str] = "DailyDialog++, JSON lines with a context and several good replies"
    kind: ClassVar[str] = "posts"
    record: ClassVar[Any] = _Record

    def posts(self, record: _Record, number: int, source: str) -> Iterable[Post]:
        turns = [text for turn in record.context if (text := turn.strip())]
        # in their order, each once: a post must not have two rows
        replies = dict.fromkeys(
            text for reply in record.positive_responses if (text := reply.strip())
        )
        if not turns:
            raise BadRecord("the context has no turn with text; expected at least one")
        if not replies:
            raise BadRecord("there is no good reply; expected positive_responses")
        sides = [f"{_known_by(turns[:1])}#{side}" for side in "AB"]
        said: list[Post] = []

        def add(text: str, turn: int, parent: str | None) -> str:
            known = _known_by([*turns[:turn], text])
            author = sides[turn % 2]
            said.append(Post(source, number, text, id=known, parent=parent, author=author))
            return known

        last: str | None = None
        for turn, text in enumerate(turns):
            last = add(text, turn, last)
        for reply in replies:
            add(reply, len(turns), last)
        return said


def _known_by(turns: list[str]) -> str:
    return blake2b(msgspec.json.encode(turns), digest_size=12).hexdigest()
