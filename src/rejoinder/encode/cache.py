"""What was computed for texts, on disk: the next run reads it instead of computing it anew.

One SQLite file in the user's cache folder, shared by all processes. A key is the hash of a text
together with the model and all settings, so nothing in it goes stale and texts are never stored.
Write-ahead logging makes it safe under concurrent processes, also if one is killed; a checksum
finds a damaged entry, which is then missing and computed anew. The cache only saves time: if the
disk gives out, everything goes on without it. In front stands a bounded memory of what was used
last, so that texts that return within a process are not read again.
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

FORMAT = 1
"""Part of the file's name: a version that stores entries in another way takes another file."""
MEMORY = 256 * 2**20
LARGEST = 20 * 2**30
"""The file does not outgrow this, nor half of the free disk: the oldest entries go."""
PATIENCE = 60.0
"""Seconds to wait for other processes that write."""
AT_ONCE = 250
"""Keys asked for in one statement."""
OVERHEAD = 120
"""About how many bytes an entry in memory takes beside its data."""

_BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

_strangers: list[sqlite3.Connection | None] = []
"""Connections of a parent process, kept to the end: even closing them would harm the parent."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, checksum INTEGER NOT NULL, data BLOB NOT NULL
)
"""


def cache_folder() -> Path | None:
    """Where this user's caches lie; None if they are switched off or there is no home.

    ``$REJOINDER_CACHE`` (``off`` for none), else ``$XDG_CACHE_HOME/rejoinder``, else
    ``~/.cache/rejoinder``. The folder may not exist yet.
    """
    chosen = os.environ.get("REJOINDER_CACHE")
    if chosen:
        return None if chosen == "off" else Path(chosen).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(shared) if shared else Path.home() / ".cache") / "rejoinder"
    except RuntimeError:
        return None


def open_cache() -> Cache:
    """The cache of this user; the same object throughout a process."""
    return _cache_in(cache_folder())


@lru_cache(maxsize=8)
def _cache_in(folder: Path | None) -> Cache:
    return Cache(folder)


def key_of(*parts: str | bytes) -> bytes:
    """16 bytes for some parts; no two lists of parts run into each other."""
    whole = blake2b(digest_size=16)
    for part in parts:
        # a lone surrogate is no UTF-8, but still a text to tell from others
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        whole.update(len(data).to_bytes(8, "little"))
        whole.update(data)
    return whole.digest()


class Cache:
    """Bytes by key, in memory and in one file of ``folder`` (in memory only without a folder)."""

    def __init__(
        self, folder: Path | None, *, memory: int = MEMORY, largest: int = LARGEST
    ) -> None:
        self.repaired = 0
        """Entries found damaged so far in this process, each computed anew."""
        self.set_aside: list[Path] = []
        """Files that were no usable database, under the names they have now."""
        self.problem: str | None = None
        """Why the file is not written (any more), or None."""
        self._folder = folder
        self._generation = 1
        self._recent = _Recent(memory)
        self._largest = largest
        self._database: sqlite3.Connection | None = None
        self._process = os.getpid()
        self._lock = threading.RLock()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The entries that there are."""
        with self._lock:
            found = {}
            missing = []
            for key in keys:
                data = self._recent.get(key)
                if data is None:
                    missing.append(key)
                else:
                    found[key] = data
            for key, data in self._read(missing):
                found[key] = data
                self._recent.put(key, data)
            return found

    def put(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        """Keep entries, all at once: another process sees all of them or none."""
        with self._lock:
            entries = list(entries)
            for key, data in entries:
                self._recent.put(key, data)
            with self._tolerating():
                database = self._open()
                if database is None or self.problem:
                    return
                rows = [(key, _checksum(key, data), data) for key, data in entries]
                with _transaction(database):
                    database.executemany(
                        "INSERT INTO entries (key, checksum, data) VALUES (?, ?, ?)"
                        " ON CONFLICT (key) DO UPDATE"
                        " SET checksum = excluded.checksum, data = excluded.data",
                        rows,
                    )
                    self._forget_oldest(database)

    def close(self) -> None:
        """Let go of the file; it is opened again when it is needed."""
        with self._lock:
            if self._database is not None and self._process == os.getpid():
                self._database.close()
                self._database = None

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def notes(self) -> list[str]:
        """What a user should know of the cache, in sentences; mostly nothing."""
        lines = []
        if self.repaired:
            entries = "entry was" if self.repaired == 1 else "entries were"
            lines.append(f"cache: {self.repaired} damaged {entries} computed anew")
        for path in self.set_aside:
            lines.append(f"cache: the file was damaged; set aside as {path}, started anew")
        if self.problem:
            lines.append(f"cache: {self.problem}; going on without it")
        return lines

    def _read(self, keys: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
        for start in range(0, len(keys), AT_ONCE):
            some = keys[start : start + AT_ONCE]
            marks = ",".join("?" * len(some))
            rows: list[tuple[bytes, int, bytes]] = []
            with self._tolerating():
                database = self._open()
                if database is None:
                    return
                rows = database.execute(
                    f"SELECT key, checksum, data FROM entries WHERE key IN ({marks})", some
                ).fetchall()
            for key, checksum, data in rows:
                if isinstance(data, bytes) and checksum == _checksum(key, data):
                    yield key, data
                else:
                    self.repaired += 1

    def _open(self) -> sqlite3.Connection | None:
        if self._process != os.getpid():
            _strangers.append(self._database)
            self._database, self._process = None, os.getpid()
        if self._database is None and self._folder is not None and self.problem is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._generation = max(self._generation, self._latest())
            path = self._path(self._generation)
            free = shutil.disk_usage(self._folder).free // 2
            self._largest = min(self._largest, free + _size(path))
            self._database = _connect(path)
        return self._database

    def _path(self, generation: int) -> Path:
        assert self._folder is not None
        return self._folder / f"vectors-{FORMAT}-{generation}.sqlite"

    def _latest(self) -> int:
        assert self._folder is not None
        names = self._folder.glob(f"vectors-{FORMAT}-*.sqlite")
        numbers = [path.stem.rpartition("-")[2] for path in names]
        return max((int(n) for n in numbers if n.isdecimal()), default=1)

    @contextlib.contextmanager
    def _tolerating(self) -> Iterator[None]:
        """A broken file is left for a new one; without a usable disk, there is no file."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            # the code of an extended error has its kind in the low byte
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _BROKEN:
                self._start_anew()
            else:
                self.problem = f"{self._folder}: {error}"
        except OSError as error:
            self.problem = f"{self._folder}: {(error.strerror or str(error)).lower()}"

    def _start_anew(self) -> None:
        """Go on with the next file. Its name is new, so no process mistakes one for the other."""
        if self._database is not None:
            with contextlib.suppress(sqlite3.Error):
                self._database.close()
            self._database = None
        broken = self._path(self._generation)
        self._generation += 1
        aside = broken.with_suffix(".broken")
        with contextlib.suppress(OSError):
            self._path(self._generation).touch()
            # only the first process that notices still finds it
            os.replace(broken, aside)
            self.set_aside.append(aside)
        for suffix in ("-wal", "-shm"):
            with contextlib.suppress(OSError):
                os.unlink(f"{broken}{suffix}")

    def _forget_oldest(self, database: sqlite3.Connection) -> None:
        pages, free, size = (
            database.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        if (pages - free) * size > self._largest:
            database.execute(
                "DELETE FROM entries WHERE id <="
                " (SELECT min(id) + (max(id) - min(id)) / 4 FROM entries)"
            )


class _Recent:
    """What was used last, up to a number of bytes."""

    def __init__(self, most: int) -> None:
        self._most, self._bytes = most, 0
        self._entries: OrderedDict[bytes, bytes] = OrderedDict()

    def get(self, key: bytes) -> bytes | None:
        data = self._entries.get(key)
        if data is not None:
            self._entries.move_to_end(key)
        return data

    def put(self, key: bytes, data: bytes) -> None:
        before = self._entries.pop(key, None)
        if before is not None:
            self._bytes -= len(before) + OVERHEAD
        self._entries[key] = data
        self._bytes += len(data) + OVERHEAD
        while self._bytes > self._most:
            _, oldest = self._entries.popitem(last=False)
            self._bytes -= len(oldest) + OVERHEAD


def _checksum(key: bytes, data: bytes) -> int:
    """Of both, so that data under the key of another entry is found as well."""
    return zlib.crc32(data, zlib.crc32(key))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _connect(path: Path) -> sqlite3.Connection:
    # transactions are begun by hand; the lock of the cache keeps threads apart
    database = sqlite3.connect(
        path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
    )
    try:
        database.execute("PRAGMA page_size = 8192")
        _log_ahead(database)
        database.execute("PRAGMA synchronous = NORMAL")
        with _transaction(database):
            database.execute(_SCHEMA)
    except BaseException:
        database.close()
        raise
    return database


def _log_ahead(database: sqlite3.Connection) -> None:
    """Switch to write-ahead logging, which SQLite refuses at once while another process does."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            locked = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if not locked or time.monotonic() > until:
                raise
            time.sleep(0.02)


@contextlib.contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    """Begin with the right to write: asking for it halfway can fail without waiting."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")
