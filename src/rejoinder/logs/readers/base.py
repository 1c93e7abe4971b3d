"""What a reader is: a log format, as posts.

Most formats are lines: a reader of those writes :meth:`Reader.read`, or, if a line is a JSON
object, gives its fields as a struct and writes :meth:`JsonReader.posts`. A format that is no
lines (a package, one big JSON document) writes :meth:`Reader.records` instead.

A bad record is a post as well, with ``reject`` set: readers never raise for bad data. What every
format needs is written here or in ``corpus/read.py`` once: bad lines, lengths, hashed authors,
turns of a dialogue.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import msgspec

from rejoinder.io import explain
from rejoinder.logs.readers.lines import CHUNK, Chunk, Lines, beginning, cut, is_plain, open_raw
from rejoinder.logs.readers.times import BadTime
from rejoinder.spec import Spec, spec_of

DELETED = "deleted"
"""The reject reason of posts whose author or platform took the text away: no fault of the log."""


class Post(msgspec.Struct, gc=False):
    """A row of ``schema.POSTS`` before its author is hashed; ``time`` is µs since 1970, UTC."""

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
    reject: str | None = None


class Turn(NamedTuple):
    """What somebody said in a dialogue; who is None where the format does not tell."""

    text: str
    speaker: str | None = None
    time: int | None = None


class BadRecord(ValueError):
    """What is wrong with a record and what was expected; becomes its reject reason."""


@dataclass(frozen=True, kw_only=True)
class Reader(ABC):
    """One log format; its fields are its parameters, as in ``messages(local=true)``."""

    name: ClassVar[str]
    summary: ClassVar[str]
    """One line for ``rejoinder ls``."""
    kind: ClassVar[str]
    """``posts`` that know what they answer, or ``dialogue``: turns in their order."""
    splittable: ClassVar[bool] = True
    """Whether any line may be the first: false where a record spans lines."""

    def spec(self) -> Spec:
        return spec_of(self, self.name)

    def __str__(self) -> str:
        return str(self.spec())

    def chunk(self, path: str, size: int = CHUNK) -> list[Chunk]:
        """How an input is cut for several processes; an input that cannot be read raises."""
        if self.splittable and is_plain(path):
            return cut(path, size)
        open_raw(path).close()
        return [Chunk(path)]

    def records(self, chunk: Chunk) -> Iterator[Post]:
        """Everything in a chunk; line-based formats write :meth:`read` instead."""
        lines = Lines(chunk)
        for post in self.read(iter(lines), chunk.path):
            if lines.bad:
                yield from _drain(lines, chunk.path)
            yield post
        yield from _drain(lines, chunk.path)

    def read(self, lines: Iterator[tuple[int, bytes]], source: str) -> Iterator[Post]:
        """The posts of numbered lines, which are valid UTF-8 and not blank."""
        raise NotImplementedError(f"{self.name} is no format of lines")


@dataclass(frozen=True, kw_only=True)
class LineReader(Reader):
    """A format in which each line stands for itself."""

    def parser(self) -> Callable[[bytes, int, str], Iterable[Post]]:
        """What is done with each line; a reader overrides it to prepare something once."""
        return self.parse

    def parse(self, line: bytes, number: int, source: str) -> Iterable[Post]:
        """The posts of one line; whatever is wrong raises :class:`BadRecord`."""
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
    """JSON lines: ``record`` names the fields that matter, the others are skipped unread."""

    record: ClassVar[Any]

    @abstractmethod
    def posts(self, record: Any, number: int, source: str) -> Iterable[Post]:
        """The posts of one decoded record: a list, no generator, so that what it raises is caught
        and a record is taken whole or not at all."""

    def parser(self) -> Callable[[bytes, int, str], Iterable[Post]]:
        decode, posts = msgspec.json.Decoder(self.record).decode, self.posts
        return lambda line, number, source: posts(decode(line), number, source)


def _drain(lines: Lines, source: str) -> Iterator[Post]:
    for bad in lines.bad:
        yield Post(source, bad.line, bad.text, reject=bad.reason)
    lines.bad.clear()


def rejected(source: str, line: int, reason: str, record: bytes | str) -> Post:
    """A record that could not be read: why, and its beginning."""
    raw = record if isinstance(record, bytes) else record[:2000].encode("utf-8", "replace")
    return Post(source, line, beginning(raw), reject=reason)


def missing(field: str) -> BadRecord:
    """The reason that a required field gives when it is not there."""
    return BadRecord(f"the field is missing: {field}; expected it in every record")


def anonymous(source: str, line: int, role: str) -> str:
    """An author who is known only as a role in one dialogue."""
    return f"{source}:{line}#{role}"


def dialogue(turns: Iterable[Turn], source: str, line: int) -> list[Post]:
    """The turns of one dialogue as posts, each answering the one before.

    The thread is the line, because the ids of published dialogues are not always unique. Turns
    without text are none. Consecutive turns of one speaker are one turn. Missing speakers
    alternate, and are somebody else in every dialogue, so that no "speaker A" of a thousand
    dialogues looks like a bot that talks all day.
    """
    thread = str(line)
    mine, other = anonymous(source, line, "A"), anonymous(source, line, "B")
    posts: list[Post] = []
    last: str | None = None
    for text, speaker, time in turns:
        text = text.strip()
        if not text:
            continue
        if speaker is None:
            speaker = other if last == mine else mine
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
            )
        )
        last = speaker
    if not posts:
        raise BadRecord("the dialogue has no turn with text; expected at least one")
    return posts
