"""``twitter``: archives of tweets, one JSON object a line, with the fields of API v1.1 or v2.

Responses of v2, ``{"data": …}``, are unwrapped. Required are id, text, time and author (in v2,
request ``author_id`` and ``created_at``). A tweet that names a user but is no reply is a mention;
if there are no entities, an ``@name`` in the text decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import msgspec

from rejoinder.files.jsonl import explain
from rejoinder.logs.readers.reader import DELETED, BadRecord, JsonReader, Post, missing, rejected
from rejoinder.logs.readers.times import BadTime, microseconds

Id = str | int | None
_NAME = re.compile(r"(?<![\w@])[@＠]\w")
_TAG = re.compile(r"<[^>]*>")
_ABSENT = msgspec.Raw()


class _User(msgspec.Struct, gc=False):
    id_str: str | None = None
    id: Id = None
    screen_name: str | None = None


class _Entities(msgspec.Struct, gc=False):
    user_mentions: list[msgspec.Raw] | None = None
    mentions: list[msgspec.Raw] | None = None


class _Long(msgspec.Struct, gc=False):
    full_text: str | None = None
    text: str | None = None
    entities: _Entities | None = None


class _Reference(msgspec.Struct, gc=False):
    type: str
    id: str | int


class _Tweet(msgspec.Struct, gc=False):
    id_str: str | None = None
    id: Id = None
    text: str | None = None
    full_text: str | None = None
    created_at: str | int | float | None = None
    lang: str | None = None
    source: str | None = None
    entities: _Entities | None = None
    # v1.1
    user: _User | None = None
    in_reply_to_status_id_str: str | None = None
    in_reply_to_status_id: Id = None
    retweeted_status: msgspec.Raw = _ABSENT
    is_quote_status: bool | None = None
    quoted_status_id_str: str | None = None
    quoted_status_id: Id = None
    extended_tweet: _Long | None = None
    delete: msgspec.Raw = _ABSENT
    # v2
    author_id: Id = None
    referenced_tweets: list[_Reference] | None = None
    note_tweet: _Long | None = None
    data: msgspec.Raw = _ABSENT


@dataclass(frozen=True, kw_only=True)
class Twitter(JsonReader):
    name: ClassVar[str] = "twitter"
    summary: ClassVar[str] = "Twitter archive, JSON lines with the fields of API v1.1 or v2"
    kind: ClassVar[str] = "posts"
    record: ClassVar[Any] = _Tweet

    def posts(self, record: _Tweet, number: int, source: str) -> Iterable[Post]:
        if record.data is not _ABSENT and _is_present(record.data):
            return _wrapped(bytes(record.data), number, source)
        return (_post(record, number, source),)


def _is_present(raw: msgspec.Raw) -> bool:
    return bytes(raw) not in (b"", b"null")


def _wrapped(data: bytes, number: int, source: str) -> list[Post]:
    """Return the tweets of one response of API v2; a bad one does not affect the others."""
    is_list = data[:1] == b"["
    tweets = msgspec.json.decode(data, type=list[msgspec.Raw]) if is_list else [data]
    posts = []
    for tweet in tweets:
        try:
            posts.append(_post(msgspec.json.decode(tweet, type=_Tweet), number, source))
        except (BadRecord, BadTime) as error:
            posts.append(rejected(source, number, str(error), bytes(tweet)))
        except msgspec.DecodeError as error:
            posts.append(rejected(source, number, explain(str(error)), bytes(tweet)))
    return posts


def _post(tweet: _Tweet, number: int, source: str) -> Post:
    if tweet.delete is not _ABSENT and _is_present(tweet.delete):
        raise BadRecord(DELETED)
    post_id = _text_id(tweet.id_str, tweet.id)
    author = _author(tweet)
    long = tweet.extended_tweet or tweet.note_tweet
    text = tweet.full_text or tweet.text
    entities = tweet.entities
    if long is not None:
        text = long.full_text or long.text or text
        entities = long.entities or entities
    if post_id is None:
        raise missing("id or id_str")
    if text is None:
        raise missing("text or full_text")
    if author is None:
        raise missing("user or author_id")
    if tweet.created_at is None:
        raise missing("created_at")
    parent = _text_id(tweet.in_reply_to_status_id_str, tweet.in_reply_to_status_id)
    retweet = text.startswith("RT @") or _is_present(tweet.retweeted_status)
    quote = bool(
        tweet.is_quote_status or tweet.quoted_status_id_str or tweet.quoted_status_id is not None
    )
    for reference in tweet.referenced_tweets or ():
        if reference.type == "replied_to":
            parent = str(reference.id)
        retweet = retweet or reference.type == "retweeted"
        quote = quote or reference.type == "quoted"
    return Post(
        source,
        number,
        text,
        id=post_id,
        parent=parent,
        author=author,
        time=microseconds(tweet.created_at),
        label=tweet.lang,
        client=_client(tweet.source) if tweet.source else None,
        retweet=retweet,
        mention=parent is None and not retweet and (quote or _has_mention(entities, text)),
    )


def _text_id(text: str | None, number: Id) -> str | None:
    """Return the id as text: as numbers, ids are too large for some programs."""
    if text:
        return text
    return None if number is None or number == "" else str(number)


def _author(tweet: _Tweet) -> str | None:
    if tweet.user is not None:
        return _text_id(tweet.user.id_str, tweet.user.id) or tweet.user.screen_name
    return _text_id(None, tweet.author_id)


def _has_mention(entities: _Entities | None, text: str) -> bool:
    """Return whether the tweet names a user."""
    if entities is None:
        return ("@" in text or "＠" in text) and _NAME.search(text) is not None
    return bool(entities.user_mentions or entities.mentions)


@lru_cache(maxsize=4096)
def _client(source: str) -> str:
    """``<a href="…">Twitter for iPhone</a>`` → ``Twitter for iPhone``."""
    return _TAG.sub("", source).strip()
