"""``messages``: one message a line, with ``dialogue_id``, ``speaker``, ``text`` and ``time``.

JSON lines with these fields, or a CSV or TSV file whose columns have these names or a synonym of
them. Messages of several dialogues may be interleaved, so ``turn`` and ``parent`` stay empty: the
pipeline orders the messages of a dialogue by (time, line) and merges consecutive messages of one
speaker.

Speakers that are called as in chat logs (user, bot, assistant …) are roles: other people in every
dialogue, and ``learn_from`` decides whose messages become responses of pairs. As people may be
called so, too, a note tells which speakers were read as roles if there are also others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar

import msgspec

from rejoinder.errors import DataError
from rejoinder.files.columns import plain_name
from rejoinder.files.compressed import DAMAGE, decompressed, is_compressed
from rejoinder.files.item_file import file_format
from rejoinder.files.jsonl import MAX_LINE_BYTES
from rejoinder.files.paths import open_regular
from rejoinder.files.tables import CsvRows
from rejoinder.logs.readers.chat import ALL, ROLES, USER, check_learn_from
from rejoinder.logs.readers.lines import CHUNK, Chunk, Lines
from rejoinder.logs.readers.reader import BadRecord, JsonReader, Post, missing, rejected
from rejoinder.logs.readers.times import BadTime, microseconds
from rejoinder.wording import option

SYNONYMS = {
    "dialogue_id": (
        *("dialog_id", "conversation_id", "chat_id", "thread_id", "session_id", "ticket_id"),
        *("dialogue", "dialog", "conversation", "chat", "thread", "session"),
    ),
    "speaker": (
        *("sender", "author", "role", "from", "participant", "speaker_id", "sender_id"),
        *("author_id", "user_id", "username", "user_name", "user", "name"),
    ),
    "text": ("message", "content", "body", "utterance", "msg", "message_text"),
    "time": ("timestamp", "datetime", "date_time", "created_at", "sent_at", "date"),
}
"""Names of columns that are read as a field, apart from its own. The first that a table has is
taken; case, blanks, hyphens and underscores do not matter."""

NEEDED = ("dialogue_id", "speaker", "text")
NAMES = frozenset({"Ai"})
"""Names of people that differ from a role in their capital letters alone."""
MAX_EXAMINED = 1_000_000
"""Messages at the beginning of a file whose speakers are examined for a note."""


class _Message(msgspec.Struct, gc=False):
    dialogue_id: str | int
    speaker: str | int
    text: str
    time: str | int | float | None = None


class _Speaker(msgspec.Struct, gc=False):
    speaker: str | int


@dataclass(frozen=True, kw_only=True)
class Messages(JsonReader):
    name: ClassVar[str] = "messages"
    summary: ClassVar[str] = "message log, JSON lines or CSV: dialogue_id, speaker, text, time"
    kind: ClassVar[str] = "dialogue"
    record: ClassVar[Any] = _Message

    local: bool = False
    """Whether all speakers are roles, such as "agent", which are other people in every dialogue."""
    learn_from: str = USER
    """Which of the roles user and assistant is learnt from; other speakers always are."""
    roles: bool = True
    """Whether speakers that are called as in chat logs are roles, or people like all others."""

    def __post_init__(self) -> None:
        check_learn_from(self.learn_from)
        if not self.roles and self.learn_from != USER:
            raise ValueError(f"learn_from={self.learn_from} has no use with roles=false")

    def posts(self, record: _Message, number: int, source: str) -> Iterable[Post]:
        speaker = str(record.speaker)
        role = self._role(speaker)
        if self.local or role is not None:
            speaker = f"{record.dialogue_id}#{role or speaker}"
        return [
            Post(
                source,
                number,
                record.text,
                id=str(number),
                thread=str(record.dialogue_id),
                author=speaker,
                time=None if record.time is None else microseconds(record.time),
                learn=role is None or self.learn_from in (ALL, role),
            )
        ]

    def chunk(self, path: str, size: int = CHUNK) -> list[Chunk]:
        if not is_table(path):
            return super().chunk(path, size)
        with _table(path):  # its header is checked
            return [Chunk(path)]  # whole, because a record may span several lines

    def records(self, chunk: Chunk) -> Iterator[Post]:
        if not is_table(chunk.path):
            yield from super().records(chunk)
            return
        with _table(chunk.path) as (rows, columns):
            for line, row in rows:
                try:
                    yield from self.posts(_message(row, columns), line, chunk.path)
                except (BadRecord, BadTime) as error:
                    yield rejected(chunk.path, line, str(error), str(row))

    def notes(self, path: str) -> list[str]:
        """Return what was guessed: columns that have other names than usual, and speakers that
        were taken for roles though they may be people."""
        notes = []
        if is_table(path):
            with _table(path) as (_, columns):
                guessed = [f"{field} = {name}" for field, name in columns.items() if field != name]
            if guessed:
                notes.append(f"{path}: columns recognised by name: {', '.join(guessed)}")
        if self.roles and (note := self._note_of_roles(path)) is not None:
            notes.append(note)
        return notes

    def _note_of_roles(self, path: str) -> str | None:
        """Return which speakers were taken for roles, if there are also other speakers, or several
        for one role."""
        counts: Counter[str] = Counter()
        others = 0
        with suppress(DataError):  # whoever reads the file will say so
            for speaker in islice(_speakers(path), MAX_EXAMINED):
                if self._role(speaker) is None:
                    others += 1
                else:
                    counts[speaker] += 1
        roles = Counter(ROLES[name] for name in {speaker.lower() for speaker in counts})
        if not counts or (not others and max(roles.values()) == 1):
            return None
        total = others + counts.total()
        named = ", ".join(
            f"{speaker} as {self._role(speaker)} ({count:,} of {total:,} messages)"
            for speaker, count in counts.most_common()
        )
        people = option("format", str(replace(self, roles=False, learn_from=USER)))
        return (
            f"{path}: speakers read as roles: {named}; if they are people, {people} reads them as"
            " such"
        )

    def _role(self, speaker: str) -> str | None:
        """Return the role of a speaker; None for people."""
        if not self.roles or speaker in NAMES:
            return None
        return ROLES.get(speaker.lower())


def is_table(path: str) -> bool:
    """Return whether the name of a file says that it is CSV or TSV."""
    return file_format(path) in ("csv", "tsv")


def _speakers(path: str) -> Iterator[str]:
    """Yield who wrote each message that can be read."""
    if is_table(path):
        with _table(path) as (rows, columns):
            for _, row in rows:
                yield row[columns["speaker"]]
        return
    decode = msgspec.json.Decoder(_Speaker).decode
    for _, line in Lines(Chunk(path)):
        with suppress(msgspec.DecodeError, UnicodeError, RecursionError):
            yield str(decode(line).speaker)


@contextmanager
def _table(path: str) -> Iterator[tuple[CsvRows, dict[str, str]]]:
    """Open a table: its rows, and the column of each field."""
    delimiter = "\t" if file_format(path) == "tsv" else None
    with open_regular(path) as raw:
        stream = decompressed(raw, path) if is_compressed(path) else raw
        try:
            rows = CsvRows(stream, path, delimiter, MAX_LINE_BYTES)
            yield rows, _columns(rows, path)
        except DAMAGE as error:
            reason = f"the compressed file is damaged or cut off ({error})"
            raise DataError(reason, path=path) from None


def _columns(rows: CsvRows, path: str) -> dict[str, str]:
    """Return the column of each field."""
    by_name: dict[str, str] = {}
    for name in rows.names:
        by_name.setdefault(plain_name(name), name)
    columns = {}
    for field, synonyms in SYNONYMS.items():
        column = next((by_name[each] for each in (field, *synonyms) if each in by_name), None)
        if column is not None:
            columns[field] = column
    if lacking := [field for field in NEEDED if field not in columns]:
        names = ", ".join(SYNONYMS[lacking[0]][:3])
        raise DataError(
            f"no column holds the {lacking[0]}; the columns are {', '.join(rows.names)}; expected a"
            f" row for each message, with {', '.join(SYNONYMS)}: rename the column to"
            f" {lacking[0]} (or {names} …)",
            path=path,
        )
    return columns


def _message(row: dict[str, Any], columns: dict[str, str]) -> _Message:
    cells = {field: row[name] for field, name in columns.items()}
    for field in ("dialogue_id", "speaker"):
        if not cells[field]:
            raise missing(field)
    return _Message(
        cells["dialogue_id"], cells["speaker"], cells["text"], cells.get("time") or None
    )
