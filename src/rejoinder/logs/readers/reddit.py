"""``reddit``: dumps of submissions and comments, JSON lines (``.zst`` as they are published).

Ids have Reddit's prefixes (``t3_`` submission, ``t1_`` comment), so ids of both kinds differ. A
post whose text was deleted or removed is rejected as deleted; a post with text whose author was
deleted has no author, instead of one author called "[deleted]". A crosspost counts as a retweet.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from rejoinder.logs.readers.reader import DELETED, BadRecord, JsonReader, Post, missing
from rejoinder.logs.readers.times import microseconds

_GONE = frozenset({"[deleted]", "[removed]", "[deleted by user]"})


class _Entry(msgspec.Struct, gc=False):
    id: str | None = None
    author: str | None = None
    created_utc: str | int | float | None = None
    title: str | None = None
    selftext: str | None = None
    body: str | None = None
    parent_id: str | None = None
    link_id: str | None = None
    crosspost_parent: str | None = None


@dataclass(frozen=True, kw_only=True)
class Reddit(JsonReader):
    name: ClassVar[str] = "reddit"
    summary: ClassVar[str] = "Reddit dump, JSON lines of submissions and comments"
    kind: ClassVar[str] = "posts"
    record: ClassVar[Any] = _Entry

    def posts(self, record: _Entry, number: int, source: str) -> Iterable[Post]:
        if not record.id:
            raise missing("id")
        if record.body is not None:
            prefix, text, parent = "t1_", record.body, record.parent_id or record.link_id
            if parent is None:
                raise missing("parent_id")
            gone = text.strip() in _GONE
        elif record.title is not None:
            body = record.selftext or ""
            prefix, text, parent = "t3_", f"{record.title} {body}".strip(), None
            gone = body.strip() in _GONE or record.title.strip() in _GONE
        else:
            raise missing("body (of a comment) or title (of a submission)")
        if gone:
            raise BadRecord(DELETED)
        if record.created_utc is None:
            raise missing("created_utc")
        return [
            Post(
                source,
                number,
                text,
                id=record.id if record.id.startswith(prefix) else prefix + record.id,
                parent=parent,
                author=None if record.author in _GONE else record.author,
                time=microseconds(record.created_utc),
                retweet=record.crosspost_parent is not None,
            )
        ]
