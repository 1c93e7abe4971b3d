"""A cache on disk of what was computed for texts, such as vectors, or answered by a server.

It is one SQLite file in the user's cache folder for each kind of value, shared by all processes. A
key is the hash of a text together with the model and all settings, so entries never become
outdated, and the texts are not stored. Write-ahead logging makes it safe for concurrent processes,
also if one is killed; a damaged entry is detected by its checksum and computed again. The cache
only saves time: if the disk fails or is full, work continues without it. In front of it, recently
used entries are kept in memory, up to a limit, so that they are not read again.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from rejoinder.files.paths import expand_user, reason

FORMAT = 1
"""Part of the file name; to be increased when entries are stored in another way."""
MAX_MEMORY = 256 * 2**20
"""Bytes of recently used entries that are kept in memory."""
MAX_FILE = 20 * 2**30
"""Bytes of the file, which takes at most half of the free disk; the oldest entries are deleted."""
LOCK_TIMEOUT = 60.0
"""Seconds to wait for other processes that write."""
VECTORS = "vectors"
"""The kind of the entries that encoders store; the file is named after it."""
KEYS_PER_QUERY = 250
ENTRY_OVERHEAD = 120
"""Approximate number of bytes that an entry takes in memory besides its data."""

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

_inherited: list[sqlite3.Connection | None] = []
"""Connections of a parent process, kept open: closing them would harm the parent."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, checksum INTEGER NOT NULL, data BLOB NOT NULL
)
"""

_INSERT = """
INSERT INTO entries (key, checksum, data) VALUES (?, ?, ?)
ON CONFLICT (key) DO UPDATE SET checksum = excluded.checksum, data = excluded.data
"""
_SELECT = "SELECT key, checksum, data FROM entries WHERE key IN ({})"


def cache_folder() -> Path | None:
    """Return the folder of the user's caches; None if they are switched off or there is no home.

    ``$REJOINDER_CACHE`` (``off`` for none), else ``$XDG_CACHE_HOME/rejoinder``, else
    ``~/.cache/rejoinder``. The folder may not exist yet.
    """
    chosen = os.environ.get("REJOINDER_CACHE")
    if chosen:
        return None if chosen == "off" else expand_user(chosen)
    shared = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(shared) if shared else Path.home() / ".cache") / "rejoinder"
    except RuntimeError:
        return None


def open_cache(kind: str = VECTORS) -> Cache:
    """Return the user's cache of a kind of value; the same object throughout a process."""
    return _cache_in(cache_folder(), kind)


@lru_cache(maxsize=8)
def _cache_in(folder: Path | None, kind: str) -> Cache:
    return Cache(folder, kind=kind)


def key_of(*parts: str | bytes) -> bytes:
    """Hash several parts to 16 bytes, with their lengths, so that ab+c differs from a+bc."""
    key = blake2b(digest_size=16)
    for part in parts:
        # a lone surrogate is not UTF-8, but texts with it must have keys, too
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        key.update(len(data).to_bytes(8, "little"))
        key.update(data)
    return key.digest()


class Cache:
    """Bytes by key, in memory and in one file of ``folder``; without a folder in memory only."""

    def __init__(
        self,
        folder: Path | None,
        *,
        kind: str = VECTORS,
        max_memory: int = MAX_MEMORY,
        max_file: int = MAX_FILE,
    ) -> None:
        self.repaired = 0
        """Damaged entries in this process, each computed again."""
        self.set_aside: list[Path] = []
        """Files that were no usable database, under their new names."""
        self.problem: str | None = None
        """Why the file is not used (any more), or None."""
        self._folder, self._kind = folder, kind
        self._generation = 1
        self._recent = _RecentEntries(max_memory)
        self._max_file = max_file
        self._database: sqlite3.Connection | None = None
        self._process = os.getpid()
        self._lock = threading.RLock()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return those of the entries that exist."""
        with self._lock:
            entries = {}
            missing = []
            for key in keys:
                data = self._recent.get(key)
                if data is None:
                    missing.append(key)
                else:
                    entries[key] = data
            for key, data in self._read(missing):
                entries[key] = data
                self._recent.put(key, data)
            return entries

    def put(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        """Store entries in one transaction: another process sees all of them or none."""
        with self._lock:
            entries = list(entries)
            for key, data in entries:
                self._recent.put(key, data)
            with self._tolerate_failures():
                database = self._open()
                if database is None or self.problem:
                    return
                rows = [(key, _checksum(key, data), data) for key, data in entries]
                with _transaction(database):
                    database.executemany(_INSERT, rows)
                    self._delete_oldest(database)

    def put_first(self, key: bytes, data: bytes) -> bytes:
        """Store an entry unless another process has stored one; return what is stored."""
        with self._lock:
            with self._tolerate_failures():
                database = self._open()
                if database is not None and not self.problem:
                    with _transaction(database):
                        row = database.execute(_SELECT.format("?"), [key]).fetchone()
                        if row is not None and _is_intact(*row):
                            data = row[2]
                        else:
                            database.execute(_INSERT, (key, _checksum(key, data), data))
                            self._delete_oldest(database)
            self._recent.put(key, data)
            return data

    def close(self) -> None:
        """Close the file; it is opened again when it is needed."""
        with self._lock:
            if self._database is not None and self._process == os.getpid():
                self._database.close()
                self._database = None

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def notes(self) -> list[str]:
        """Return sentences about problems that the user should know; usually none."""
        lines = []
        if self.repaired:
            entries = "entry was" if self.repaired == 1 else "entries were"
            lines.append(f"cache: {self.repaired} damaged {entries} computed again")
        for path in self.set_aside:
            lines.append(
                f"cache: the file was damaged; it was renamed to {path}, and a new one started"
            )
        if self.problem:
            lines.append(f"cache: {self.problem}; continuing without it")
        return lines

    def _read(self, keys: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
        for start in range(0, len(keys), KEYS_PER_QUERY):
            batch = keys[start : start + KEYS_PER_QUERY]
            marks = ",".join("?" * len(batch))
            rows: list[tuple[bytes, int, bytes]] = []
            with self._tolerate_failures():
                database = self._open()
                if database is None:
                    return
                rows = database.execute(_SELECT.format(marks), batch).fetchall()
            for key, checksum, data in rows:
                if _is_intact(key, checksum, data):
                    yield key, data
                else:
                    self.repaired += 1

    def _open(self) -> sqlite3.Connection | None:
        if self._process != os.getpid():
            _inherited.append(self._database)
            self._database, self._process = None, os.getpid()
        if self._database is None and self._folder is not None and self.problem is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._generation = max(self._generation, self._latest())
            path = self._path(self._generation)
            free = shutil.disk_usage(self._folder).free // 2
            self._max_file = min(self._max_file, free + _size(path))
            self._database = _connect(path)
        return self._database

    def _path(self, generation: int) -> Path:
        assert self._folder is not None
        return self._folder / f"{self._kind}-{FORMAT}-{generation}.sqlite"

    def _latest(self) -> int:
        assert self._folder is not None
        names = self._folder.glob(f"{self._kind}-{FORMAT}-*.sqlite")
        numbers = [path.stem.rpartition("-")[2] for path in names]
        return max((int(n) for n in numbers if n.isdecimal()), default=1)

    @contextlib.contextmanager
    def _tolerate_failures(self) -> Iterator[None]:
        """Replace a damaged file by a new one; go on without a file if the disk can't be used."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            # the low byte of an extended error code is its kind
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED:
                self._start_new_file()
            else:
                self.problem = f"{self._folder}: {error}"
        except OSError as error:
            self.problem = f"{self._folder}: {reason(error)}"

    def _start_new_file(self) -> None:
        """Continue with a file of a new name, so that no process confuses the two."""
        if self._database is not None:
            with contextlib.suppress(sqlite3.Error):
                self._database.close()
            self._database = None
        damaged = self._path(self._generation)
        self._generation += 1
        renamed = damaged.with_suffix(".damaged")
        with contextlib.suppress(OSError):
            self._path(self._generation).touch()
            # only the first process that notices the damage still finds the file
            os.replace(damaged, renamed)
            self.set_aside.append(renamed)
        for suffix in ("-wal", "-shm"):
            with contextlib.suppress(OSError):
                os.unlink(f"{damaged}{suffix}")

    def _delete_oldest(self, database: sqlite3.Connection) -> None:
        pages, free, size = (
            database.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        if (pages - free) * size > self._max_file:
            database.execute(
                "DELETE FROM entries WHERE id <="
                " (SELECT min(id) + (max(id) - min(id)) / 4 FROM entries)"
            )


class _RecentEntries:
    """Recently used entries, up to a number of bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._bytes = max_bytes, 0
        self._entries: OrderedDict[bytes, bytes] = OrderedDict()

    def get(self, key: bytes) -> bytes | None:
        data = self._entries.get(key)
        if data is not None:
            self._entries.move_to_end(key)
        return data

    def put(self, key: bytes, data: bytes) -> None:
        before = self._entries.pop(key, None)
        if before is not None:
            self._bytes -= len(before) + ENTRY_OVERHEAD
        self._entries[key] = data
        self._bytes += len(data) + ENTRY_OVERHEAD
        while self._bytes > self._max_bytes:
            _, oldest = self._entries.popitem(last=False)
            self._bytes -= len(oldest) + ENTRY_OVERHEAD


def _checksum(key: bytes, data: bytes) -> int:
    """Return a checksum of key and data, so that data under a wrong key are detected as well."""
    return zlib.crc32(data, zlib.crc32(key))


def _is_intact(key: bytes, checksum: int, data: object) -> bool:
    return isinstance(data, bytes) and checksum == _checksum(key, data)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _connect(path: Path) -> sqlite3.Connection:
    # transactions are begun explicitly; the lock of the cache separates threads
    database = sqlite3.connect(
        path, timeout=LOCK_TIMEOUT, isolation_level=None, check_same_thread=False
    )
    try:
        database.execute("PRAGMA page_size = 8192")
        _use_write_ahead_log(database)
        database.execute("PRAGMA synchronous = NORMAL")
        with _transaction(database):
            database.execute(_SCHEMA)
    except BaseException:
        database.close()
        raise
    return database


def _use_write_ahead_log(database: sqlite3.Connection) -> None:
    """Switch to write-ahead logging; SQLite refuses that while another process does the same."""
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            locked = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if not locked or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


@contextlib.contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    """Begin a transaction with a write lock: to acquire it later can fail without waiting."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")
