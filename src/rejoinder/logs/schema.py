"""The tables of the log pipeline: posts, as readers produce them, and pairs, as it writes them.

A post is a tweet, a comment, or a turn of a chat. In archives (``kind`` posts) each refers to the
post that it answers; in dialogues (``kind`` dialogue) each turn answers the one before.

A bad record is a row too: ``reject`` holds the reason, ``text`` the beginning of the record. So no
record is lost, on one machine or on a cluster, and the report is a query.
"""

from __future__ import annotations

import pyarrow as pa

POSTS = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),  # the input, as the user named it
        pa.field("line", pa.int64(), nullable=False),  # line in the input, from 1
        pa.field("kind", pa.string(), nullable=False),  # "posts" or "dialogue"
        pa.field("id", pa.string()),  # unique in the archive
        pa.field("thread", pa.string()),  # dialogue formats: the dialogue
        pa.field("turn", pa.int32()),  # dialogue formats: position in it, from 0
        pa.field("parent", pa.string()),  # id of the post that this one answers
        pa.field("author", pa.string()),  # salted hash, never the name
        pa.field("time", pa.timestamp("us", tz="UTC")),
        pa.field("text", pa.string(), nullable=False),
        pa.field("label", pa.string()),  # the platform's language label
        pa.field("client", pa.string()),  # the program that posted it
        pa.field("retweet", pa.bool_(), nullable=False),  # repeats another post
        pa.field("mention", pa.bool_(), nullable=False),  # quotes or addresses without answering
        pa.field("learn", pa.bool_(), nullable=False),  # may be the response of a pair
        pa.field("reject", pa.string()),  # why the record could not be read
    ]
)

CLEANED = (
    POSTS.append(pa.field("removed", pa.string())).append(  # the filter that removed the post
        pa.field("changed", pa.int64(), nullable=False)
    )  # bit i: filter i changed the text
)

PAIRS = pa.schema(
    [
        pa.field("dialogue_id", pa.string(), nullable=False),
        pa.field("turn", pa.int32(), nullable=False),  # of the response; the first utterance is 0
        pa.field("context", pa.list_(pa.string()), nullable=False),  # turns before the utterance
        pa.field("utterance", pa.string(), nullable=False),
        pa.field("response", pa.string(), nullable=False),
        pa.field("utterance_id", pa.string(), nullable=False),  # shared by all its responses
        pa.field("responses", pa.int32(), nullable=False),  # number of responses to the utterance
        pa.field("response_id", pa.string(), nullable=False),
        pa.field("utterance_author", pa.string()),
        pa.field("response_author", pa.string()),
        pa.field("time", pa.timestamp("us", tz="UTC")),
        pa.field("source", pa.string(), nullable=False),
        pa.field("split", pa.string(), nullable=False),  # train, validation or test
    ]
)
