"""The tables of a study's database, and their versions.

Names of people are in a table of their own, so that answers can be passed on without them. Secret
links and sessions are stored as SHA-256 hashes: they are random 128-bit numbers, which cannot be
guessed from a hash.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sqlalchemy import (
    JSON,
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    insert,
    inspect,
    select,
    update,
)

from rejoinder.errors import DataError

VERSION = 1
"""Version of the tables below. A change of them needs a step in MIGRATIONS."""

tables = MetaData()

facts = Table(
    "facts",
    tables,
    Column("name", String(50), primary_key=True),
    Column("value", Text, nullable=False),
    comment="version of the schema, settings when the first answer came, digest of the items, …",
)

people = Table(
    "people",
    tables,
    Column("id", Integer, primary_key=True),
    Column("pseudonym", String(20), nullable=False, unique=True),
    Column("link_hash", String(64), nullable=False, unique=True),
    Column("stage", String(20), nullable=False, default="consent"),
    Column("state", String(20), nullable=False, default="active"),
    Column("created", Float, nullable=False),
    Column("seen", Float, nullable=False),
    Column("answers", Integer, nullable=False, default=0),
    Column("refused", Integer, nullable=False, default=0),
    Column("test_right", Integer, nullable=False, default=0),
    Column("batch_end", Integer, nullable=False, default=0),
)

names = Table(
    "names",
    tables,
    Column("person", ForeignKey("people.id"), primary_key=True),
    Column("name", Text, nullable=False),
    Column("platform_id", String(200), unique=True),
    comment="who the people are; 'annotate forget' deletes a row",
)

sessions = Table(
    "sessions",
    tables,
    Column("hash", String(64), primary_key=True),
    Column("person", ForeignKey("people.id"), index=True),
    Column("created", Float, nullable=False),
    comment="browsers that opened a secret link; without a person: the researcher's",
)

tasks = Table(
    "tasks",
    tables,
    Column("id", Integer, primary_key=True),
    Column("key", String(200), nullable=False, unique=True),
    Column("phase", String(10), nullable=False),
    Column("context", Integer, nullable=False),
    Column("system", Integer, nullable=False),
    Column("shuffled", Float, nullable=False),
    Column("wanted", Integer, nullable=False),
    Column("taken", Integer, nullable=False, default=0),
    Column("answers", Integer, nullable=False, default=0),
    Column("content", JSON, nullable=False),
    Index("tasks_of_context", "context"),
)

Index("free_tasks", tasks.c.phase, tasks.c.taken.desc(), tasks.c.shuffled)

leases = Table(
    "leases",
    tables,
    Column("id", Integer, primary_key=True),
    Column("code", String(40), nullable=False, unique=True),
    Column("task", ForeignKey("tasks.id"), nullable=False),
    Column("person", ForeignKey("people.id"), nullable=False),
    Column("state", String(10), nullable=False),
    Column("variant", Integer, nullable=False, default=0),
    Column("view", JSON, nullable=False),
    Column("issued", Float, nullable=False),
    Column("expires", Float, nullable=False),
    UniqueConstraint("task", "person"),
    Index("open_leases", "state", "expires"),
    Index("leases_of_person", "person", "state"),
)

answers = Table(
    "answers",
    tables,
    Column("id", Integer, primary_key=True),
    Column("lease", ForeignKey("leases.id"), nullable=False, unique=True),
    Column("task", ForeignKey("tasks.id"), nullable=False, index=True),
    Column("person", ForeignKey("people.id"), nullable=False, index=True),
    Column("phase", String(10), nullable=False),
    Column("state", String(10), nullable=False),
    Column("value", JSON, nullable=False),
    Column("comment", Text, nullable=False, default=""),
    Column("seconds", Float, nullable=False),
    Column("received", Float, nullable=False),
    Column("flags", JSON, nullable=False),
)

refusals = Table(
    "refusals",
    tables,
    Column("id", Integer, primary_key=True),
    Column("person", ForeignKey("people.id"), nullable=False, index=True),
    Column("task", ForeignKey("tasks.id"), nullable=False),
    Column("reason", String(40), nullable=False),
    Column("time", Float, nullable=False),
)


class PersonRow(NamedTuple):
    """A row of ``people``."""

    id: int
    pseudonym: str
    link_hash: str
    stage: str
    state: str
    created: float
    seen: float
    answers: int
    refused: int
    test_right: int
    batch_end: int


class TaskRow(NamedTuple):
    """A row of ``tasks``."""

    id: int
    key: str
    phase: str
    context: int
    system: int
    shuffled: float
    wanted: int
    taken: int
    answers: int
    content: dict[str, Any]


class LeaseRow(NamedTuple):
    """A row of ``leases``."""

    id: int
    code: str
    task: int
    person: int
    state: str
    variant: int
    view: dict[str, Any]
    issued: float
    expires: float


MIGRATIONS: dict[int, Callable[[Connection], None]] = {}
"""Steps from a version of the schema to the next one."""


_VERSION = select(facts.c.value).where(facts.c.name == "version").with_for_update()


def one_at_a_time(connection: Connection) -> None:
    """Let other transactions that call this wait until this one ends.

    For what counts rows and then adds one. SQLite has one writer at a time anyway.
    """
    connection.execute(_VERSION)


def prepare(connection: Connection, source: str) -> bool:
    """Create the tables in an empty database, or bring an older schema up to date.

    Return whether the database was empty. A database of another program or of a newer version of
    Rejoinder is refused.
    """
    present = set(inspect(connection).get_table_names())
    if not present:
        tables.create_all(connection)
        connection.execute(insert(facts).values(name="version", value=str(VERSION)))
        return True
    if not {"facts", "people", "tasks", "leases", "answers"} <= present:
        raise DataError(
            "the database is not that of a study; name an empty one, or that of the study",
            path=source,
        )
    stored = connection.scalar(select(facts.c.value).where(facts.c.name == "version")) or "none"
    if not stored.isdecimal():
        raise DataError(f"the database has an unknown version '{stored}'", path=source)
    version = int(stored)
    if version > VERSION:
        raise DataError(
            f"the database has version {version} of the format, this program knows {VERSION};"
            " update rejoinder",
            path=source,
        )
    while version < VERSION:
        step = MIGRATIONS.get(version)
        if step is None:
            raise DataError(f"the database has an unknown version {version}", path=source)
        step(connection)
        version += 1
        connection.execute(
            update(facts).where(facts.c.name == "version").values(value=str(version))
        )
    return False
