"""``dailydialog-plusplus``: a context a line, with several good replies to its last turn.

The good replies answer the same post, so they share its ``utterance_id``, which raters are trained
on. The wrong replies of DailyDialog++ are not read.

The id of a post is a hash of the dialogue up to it. Where two contexts begin alike (28 with "May I
help you?"), their common turns are the same posts with several answers, in one dialogue, which a
split never divides. Repetitions are counted as ``repeated-id``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar

import msgspec

from rejoinder.logs.readers.reader import BadRecord, JsonReader, Post


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
        # each once, in order: a post must not have two rows
        replies = dict.fromkeys(
            text for reply in record.positive_responses if (text := reply.strip())
        )
        if not turns:
            raise BadRecord("the context has no turn with text; expected at least one")
        if not replies:
            raise BadRecord("there is no good reply; expected positive_responses")
        sides = [f"{_hash(turns[:1])}#{side}" for side in "AB"]
        posts: list[Post] = []

        def add(text: str, turn: int, parent: str | None) -> str:
            post_id = _hash([*turns[:turn], text])
            author = sides[turn % 2]
            posts.append(Post(source, number, text, id=post_id, parent=parent, author=author))
            return post_id

        last: str | None = None
        for turn, text in enumerate(turns):
            last = add(text, turn, last)
        for reply in replies:
            add(reply, len(turns), last)
        return posts


def _hash(turns: list[str]) -> str:
    return blake2b(msgspec.json.encode(turns), digest_size=12).hexdigest()
