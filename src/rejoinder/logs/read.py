"""Read a chunk of a log as record batches of ``schema.POSTS``.

For every format: authors are replaced by salted hashes, a post that is too long or answers itself
is rejected, and batches stay small enough to be passed between processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

import pyarrow as pa

from rejoinder.logs.readers.lines import BEGINNING, Chunk
from rejoinder.logs.readers.reader import Post, Reader
from rejoinder.logs.schema import POSTS

MAX_CHARACTERS = 100_000
BATCH_ROWS = 8192
BATCH_CHARACTERS = 4_000_000
"""4 to 12 MB, depending on the script."""
_MAX_CACHED_AUTHORS = 2**20


class Hasher:
    """Hashes authors to 16 hexadecimal digits that only the owner of the salt can recompute."""

    def __init__(self, salt: bytes | str) -> None:
        key = salt.encode() if isinstance(salt, str) else salt
        self._key = key if len(key) <= 64 else blake2b(key).digest()
        self._hashes: dict[str, str] = {}

    def __call__(self, author: str | None) -> str | None:
        if author is None:
            return None
        digest = self._hashes.get(author)
        if digest is None:
            if len(self._hashes) >= _MAX_CACHED_AUTHORS:
                self._hashes.clear()
            raw = author.encode("utf-8", "surrogatepass")
            digest = blake2b(raw, digest_size=8, key=self._key).hexdigest()
            self._hashes[author] = digest
        return digest


def read_chunk(reader: Reader, chunk: Chunk, salt: bytes | str) -> Iterator[pa.RecordBatch]:
    """Yield all posts of a chunk, rejects included; bad data never raises."""
    hasher = Hasher(salt)
    posts: list[Post] = []
    characters = 0
    for post in reader.records(chunk):
        size = len(post.text)
        if size > MAX_CHARACTERS:
            _reject(post, f"the text has {size:,} characters; expected at most {MAX_CHARACTERS:,}")
        elif post.parent is not None and post.parent == post.id:
            _reject(post, "the post answers itself; expected the id of another post")
        posts.append(post)
        characters += size
        if len(posts) == BATCH_ROWS or characters >= BATCH_CHARACTERS:
            yield _batch(reader, posts, hasher)
            posts, characters = [], 0
    if posts:
        yield _batch(reader, posts, hasher)


def _reject(post: Post, reason: str) -> None:
    post.reject = post.reject or reason
    post.text = post.text[:BEGINNING]


def _batch(reader: Reader, posts: list[Post], hasher: Hasher) -> pa.RecordBatch:
    columns = {
        "source": pa.array([p.source for p in posts], pa.string()),
        "line": pa.array([p.line for p in posts], pa.int64()),
        "kind": pa.repeat(pa.scalar(reader.kind, pa.string()), len(posts)),
        "id": pa.array([p.id for p in posts], pa.string()),
        "thread": pa.array([p.thread for p in posts], pa.string()),
        "turn": pa.array([p.turn for p in posts], pa.int32()),
        "parent": pa.array([p.parent for p in posts], pa.string()),
        "author": pa.array([hasher(p.author) for p in posts], pa.string()),
        "time": pa.array([p.time for p in posts], POSTS.field("time").type),
        "text": pa.array([p.text for p in posts], pa.string()),
        "label": pa.array([p.label for p in posts], pa.string()),
        "client": pa.array([p.client for p in posts], pa.string()),
        "retweet": pa.array([p.retweet for p in posts], pa.bool_()),
        "mention": pa.array([p.mention for p in posts], pa.bool_()),
        "learn": pa.array([p.learn for p in posts], pa.bool_()),
        "reject": pa.array([p.reject for p in posts], pa.string()),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in POSTS.names], schema=POSTS)
