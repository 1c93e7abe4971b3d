"""The interface of log readers: each turns one log format into posts.

Most formats consist of lines: their readers implement :meth:`Reader.read`, or, if each line is a
JSON object, declare its fields as a struct and implement :meth:`JsonReader.posts`. Other formats
(a package, one large JSON document) implement :meth:`Reader.records`.

A bad record becomes a post with ``reject`` set: readers never raise for bad data. What all formats
share is here and in ``logs/read.py``: bad lines, maximum lengths, hashed authors, the turns of a
dialogue.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import msgspec

from rejoinder.errors import UsageError
from rejoinder.files.compressed import is_compressed
from rejoinder.files.jsonl import explain
from rejoinder.files.paths import open_regular
from rejoinder.logs.readers.lines import CHUNK, Chunk, Lines, beginning, cut
from rejoinder.logs.readers.times import BadTime
from rejoinder.registry import READERS
from rejoinder.spec import Spec, parameters, parse, spec_of
from rejoinder.wording import option

DELETED = "deleted"
"""The reject reason of posts that were deleted on the platform; the log itself is fine."""


class Post(msgspec.Struct, gc=False):
    """A row of ``schema.POSTS`` before its author is hashed; ``time`` is in µs since 1970, UTC."""

    source: str
    line: int
    text: str
    id: str | None = None
    thread: str | None = None
    turn: int | None = None
    parent: str | None = None
    author: str | None = None
    time: int | None = None
    label: str | None = None
    client: str | None = None
    retweet: bool = False
    mention: bool = False
    learn: bool = True
    reject: str | None = None


class Turn(NamedTuple):
    """A turn of a dialogue; ``speaker`` is None if the format does not name speakers."""

    text: str
    speaker: str | None = None
    time: int | None = None
    learn: bool = True
    """Whether the turn may be the response of a pair, or only context."""


class BadRecord(ValueError):
    """The reason to reject a record: the problem, and the expected content."""


@dataclass(frozen=True, kw_only=True)
class Reader(ABC):
    """One log format; its fields are its parameters, as in ``messages(local=true)``."""

    name: ClassVar[str]
    summary: ClassVar[str]
    """One line for ``rejoinder ls``."""
    kind: ClassVar[str]
    """``posts``, which refer to the post they answer, or ``dialogue``: turns in order."""
    splittable: ClassVar[bool] = True
    """Whether reading may start at any line: False if a record spans several lines."""

    def spec(self) -> Spec:
        return spec_of(self, self.name)

    def __str__(self) -> str:
        return str(self.spec())

    def chunk(self, path: str, size: int = CHUNK) -> list[Chunk]:
        """Split an input for several processes; an input that cannot be read raises DataError."""
        if self.splittable and not is_compressed(path):
            return cut(path, size)
        open_regular(path).close()
        return [Chunk(path)]

    def records(self, chunk: Chunk) -> Iterator[Post]:
        """Yield all posts of a chunk; formats of lines implement :meth:`read` instead."""
        lines = Lines(chunk)
        for post in self.read(iter(lines), chunk.path):
            if lines.bad:
                yield from _drain(lines, chunk.path)
            yield post
        yield from _drain(lines, chunk.path)

    def read(self, lines: Iterator[tuple[int, bytes]], source: str) -> Iterator[Post]:
        """Yield the posts of numbered lines, which are valid UTF-8 and not blank."""
        raise NotImplementedError(f"{self.name} is not a format of lines")


@dataclass(frozen=True, kw_only=True)
class LineReader(Reader):
    """A format in which each line is a record."""

    def parser(self) -> Callable[[bytes, int, str], Iterable[Post]]:
        """Return the function that parses a line; override it to prepare something once."""
        return self.parse

    def parse(self, line: bytes, number: int, source: str) -> Iterable[Post]:
        """Return the posts of one line; a bad line raises :class:`BadRecord`."""
        raise NotImplementedError

    def read(self, lines: Iterator[tuple[int, bytes]], source: str) -> Iterator[Post]:
        parse = self.parser()
        for number, line in lines:
            try:
                posts = parse(line, number, source)
            except (BadRecord, BadTime) as error:
                posts = [rejected(source, number, str(error), line)]
            except msgspec.ValidationError as error:
                posts = [rejected(source, number, explain(str(error)), line)]
            except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
                reason = f"broken JSON ({str(error).lower()[:100]}); expected one object a line"
                posts = [rejected(source, number, reason, line)]
            yield from posts


@dataclass(frozen=True, kw_only=True)
class JsonReader(LineReader):
    """JSON lines; ``record`` declares the fields that are read, all others are skipped."""

    record: ClassVar[Any]

    @abstractmethod
    def posts(self, record: Any, number: int, source: str) -> Iterable[Post]:
        """Return the posts of one decoded record.

        A list, not a generator: exceptions are caught, and a record is taken whole or not at all.
        """

    def parser(self) -> Callable[[bytes, int, str], Iterable[Post]]:
        decode, posts = msgspec.json.Decoder(self.record).decode, self.posts
        return lambda line, number, source: posts(decode(line), number, source)


def _drain(lines: Lines, source: str) -> Iterator[Post]:
    for bad in lines.bad:
        yield Post(source, bad.line, bad.text, reject=bad.reason)
    lines.bad.clear()


def rejected(source: str, line: int, reason: str, record: bytes | str) -> Post:
    """Return the post of a bad record: the reason and the beginning of the record."""
    raw = record if isinstance(record, bytes) else record[:2000].encode("utf-8", "replace")
    return Post(source, line, beginning(raw), reject=reason)


def missing(field: str) -> BadRecord:
    """Return the error for a missing field."""
    return BadRecord(f"the field is missing: {field}; expected it in every record")


def anonymous(source: str, line: int, role: str) -> str:
    """Return an author id for a role in one dialogue."""
    return f"{source}:{line}#{role}"


def dialogue(turns: Iterable[Turn], source: str, line: int) -> list[Post]:
    """Return the turns of one dialogue as posts, each of which answers the one before.

    The line is the thread, because the ids of published dialogues are not always unique. Turns
    without text are skipped; consecutive turns of one speaker are merged. If speakers are missing,
    two alternate, and have other ids in every dialogue: one "speaker A" of a thousand dialogues
    would look like a bot that talks all day.
    """
    thread = str(line)
    first, second = anonymous(source, line, "A"), anonymous(source, line, "B")
    posts: list[Post] = []
    last: str | None = None
    for text, speaker, time, learn in turns:
        text = text.strip()
        if not text:
            continue
        if speaker is None:
            speaker = second if last == first else first
        if posts and speaker == last:
            posts[-1].text += " " + text
            continue
        turn = len(posts)
        posts.append(
            Post(
                source,
                line,
                text,
                id=f"{thread}/{turn}",
                thread=thread,
                turn=turn,
                parent=f"{thread}/{turn - 1}" if turn else None,
                author=speaker,
                time=time,
                learn=learn,
            )
        )
        last = speaker
    if not posts:
        raise BadRecord("the dialogue has no turn with text; expected at least one")
    return posts


def make_reader(spec: str | Spec, learn_from: str | None = None) -> Reader:
    """Make the reader that a spec describes, with the caller's ``learn_from``."""
    spec = parse(spec) if isinstance(spec, str) else spec
    if learn_from is not None:
        if "learn_from" not in parameters(READERS.find(spec.name)):
            raise UsageError(
                f"{option('learn_from')}: the format '{spec.name}' has no roles; leave it out"
            )
        if dict(spec.params).get("learn_from", learn_from) != learn_from:
            raise UsageError(
                f"{option('learn_from', learn_from)} contradicts {option('format', str(spec))}"
            )
        spec = Spec(spec.name, tuple((dict(spec.params) | {"learn_from": learn_from}).items()))
    return READERS.make(spec)  # type: ignore[no-any-return]
