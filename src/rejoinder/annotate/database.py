"""Connections to a study's database: SQLite in the folder, or PostgreSQL.

SQLite has one writer at a time, so a transaction that writes begins with the lock (``BEGIN
IMMEDIATE``) and waits for it instead of failing with "database is locked". Answers are on the disk
when a transaction ends: the journal is synchronised at each commit. Waiting for the disk takes
longer than all the rest, so what several people send at the same moment is committed together, by
one thread (:meth:`Database.write`). PostgreSQL waits for the disk for several transactions at once,
and each statement is a message to another process; so a few threads have one transaction each.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, OperationalError

from rejoinder.errors import DataError, RejoinderError, ResourceError, UsageError, missing_extra
from rejoinder.files.output import take_lock

BUSY_SECONDS = 30
MAX_ATTEMPTS = 50
MAX_TOGETHER = 50
"""Callers whose work SQLite commits together; the others wait for the next transaction."""
POSTGRES_WRITERS = 12
"""Transactions of a PostgreSQL database at once; more threads are in each other's way."""
POSTGRES_CONNECTIONS = 20
RETRIED = ("40P01", "40001")
"""Codes of PostgreSQL: deadlock detected, serialization failure."""
SERVER_LOCK = 0x72656A6F  # "rejo"
POSTGRES = ("postgresql", "postgres")


T = TypeVar("T")


class DatabaseFull(ResourceError):
    """The disk of the database is full; nothing was written."""


class TryAgain(Exception):
    """Another transaction is in the way; the work can be done when it has ended."""


class _Job(Generic[T]):
    """Work that waits to be committed, and the future that tells what became of it."""

    def __init__(
        self, work: Callable[[Connection], T], loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self.work, self.loop = work, loop
        self.future: Future[T] | asyncio.Future[T] = loop.create_future() if loop else Future()
        self.result: T | None = None
        self.error: BaseException | None = None

    def tell(self) -> None:
        """Wake who waits for the work; in the thread of the event loop, if there is one."""
        if self.future.done():  # cancelled
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)  # type: ignore[arg-type]


class Database:
    """A database and the transactions on it."""

    def __init__(self, address: str, *, sqlite_file: Path | None = None) -> None:
        self.engine = _engine(address, sqlite_file)
        self.sqlite_file = sqlite_file
        self.name = str(sqlite_file) if sqlite_file else self.engine.url.render_as_string()
        # PostgreSQL needs no BEGIN and ROLLBACK to read; the driver of SQLite sends none
        alone = {} if sqlite_file else {"isolation_level": "AUTOCOMMIT"}
        self._reading = self.engine.execution_options(**alone)
        self._writer = threading.Lock()
        self._jobs: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._threads: list[threading.Thread] = []

    @property
    def is_sqlite(self) -> bool:
        return self.sqlite_file is not None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a connection that reads; each statement sees what is stored at that moment."""
        with self.explained(), self._reading.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction that writes: all of it is stored at the end, or nothing."""
        with self.explained(), self._transaction() as connection:
            yield connection

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        if not self.is_sqlite:
            with self.engine.begin() as connection:
                yield connection
            return
        with self._writer, self.engine.connect() as connection:  # threads queue for the lock,
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # processes in SQLite
            with _committed(connection):
                yield connection

    def write(self, work: Callable[[Connection], T]) -> T:
        """Call ``work`` in a transaction that writes; its result is stored when this returns.

        Threads of the database do that. In SQLite it is one, which does the work of all who call
        at the same moment in one transaction: one wait for the disk serves them all. ``work`` is
        called again if the transaction fails, so it must change nothing but the database.
        """
        for attempt in range(MAX_ATTEMPTS):
            job = _Job(work)
            self._add(job)
            assert isinstance(job.future, Future)
            try:
                return job.future.result()
            except Exception as error:
                time.sleep(self._pause(error, attempt))
        raise self._too_busy()

    async def write_soon(self, work: Callable[[Connection], T]) -> T:
        """Do the same as :meth:`write` for a caller in an event loop, which goes on meanwhile."""
        for attempt in range(MAX_ATTEMPTS):
            job = _Job(work, asyncio.get_running_loop())
            self._add(job)
            assert isinstance(job.future, asyncio.Future)
            try:
                return await job.future
            except Exception as error:
                await asyncio.sleep(self._pause(error, attempt))
        raise self._too_busy()

    def _pause(self, error: Exception, attempt: int) -> float:
        """Return after how many seconds work is tried again: another transaction was in its way.

        Any other error is raised.
        """
        if isinstance(error, DBAPIError):
            if getattr(error.orig, "sqlstate", None) not in RETRIED:
                raise explained(error, self.name) from error
        elif not isinstance(error, TryAgain):
            raise error
        return random.uniform(0, 0.002 * (attempt + 1))

    def _too_busy(self) -> ResourceError:
        return ResourceError(f"{self.name}: the database is too busy; try again")

    def _add(self, job: _Job[Any]) -> None:
        """Hand work to the threads that write."""
        with self._starting:
            if not self._threads:
                self._threads = [
                    threading.Thread(target=self._serve, name=f"writer-{number}", daemon=True)
                    for number in range(1 if self.is_sqlite else POSTGRES_WRITERS)
                ]
                for thread in self._threads:
                    thread.start()
            self._jobs.put(job)

    def _serve(self) -> None:
        """Do what other threads ask for, until the database is closed."""
        most = MAX_TOGETHER if self.is_sqlite else 1
        while True:
            jobs = [self._jobs.get()]
            while len(jobs) < most and not self._jobs.empty():
                jobs.append(self._jobs.get())
            wanted = [job for job in jobs if job is not None]
            if wanted:
                self._commit(wanted)
            if len(wanted) < len(jobs):
                return

    def _commit(self, jobs: Sequence[_Job[Any]]) -> None:
        """Do work in one transaction; if some of it fails, nothing is stored, and each is done
        again in a transaction of its own."""
        try:
            with self._transaction() as connection:
                for job in jobs:
                    job.result = job.work(connection)
        except Exception as error:
            if len(jobs) > 1:
                for job in jobs:
                    self._commit([job])
                return
            jobs[0].error = error
        _tell(jobs)

    @contextmanager
    def only_server(self) -> Iterator[None]:
        """Keep a second server away from the database for as long as the block runs."""
        message = f"{self.name}: another server uses this database; stop it first"
        if self.sqlite_file is not None:
            with open(f"{self.sqlite_file}.lock", "wb") as file:
                if not take_lock(file):
                    raise ResourceError(message)
                yield
            return
        with self.engine.connect() as connection:
            locked = connection.scalar(
                text("SELECT pg_try_advisory_lock(:key)"), {"key": SERVER_LOCK}
            )
            if not locked:
                raise ResourceError(message)
            connection.commit()
            try:
                yield
            finally:  # the lock belongs to the session, not to a transaction
                with contextlib.suppress(DBAPIError):
                    connection.execute(
                        text("SELECT pg_advisory_unlock(:key)"), {"key": SERVER_LOCK}
                    )

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn errors of the database into ones that the user can fix."""
        try:
            yield
        except RejoinderError:
            raise
        except DBAPIError as error:
            raise explained(error, self.name) from error

    def close(self) -> None:
        """Store what is still waiting, and close the connections."""
        with self._starting:
            threads, self._threads = self._threads, []
            for _ in threads:
                self._jobs.put(None)
        for thread in threads:
            thread.join()
        self.engine.dispose()


def _tell_each(jobs: Sequence[_Job[Any]]) -> None:
    for job in jobs:
        job.tell()


def _tell(jobs: Sequence[_Job[Any]]) -> None:
    """Wake all who wait; an event loop once for all of them."""
    _tell_each([job for job in jobs if job.loop is None])
    for loop in {job.loop for job in jobs if job.loop is not None}:
        own = [job for job in jobs if job.loop is loop]
        with contextlib.suppress(RuntimeError):  # the server has ended meanwhile
            loop.call_soon_threadsafe(_tell_each, own)


@contextmanager
def _committed(connection: Connection) -> Iterator[None]:
    """Commit at the end of the block, or roll back."""
    try:
        yield
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        if _in_transaction(connection):  # SQLite rolls back by itself if the disk is full
            connection.exec_driver_sql("ROLLBACK")
        raise


def _in_transaction(connection: Connection) -> bool:
    return bool(connection.connection.dbapi_connection.in_transaction)  # type: ignore[union-attr]


def explained(error: DBAPIError, name: str) -> Exception:
    """Return the error of a database as one that the user can fix, or as it is."""
    cause = str(error.orig).partition("\n")[0]
    if "disk is full" in cause or "disk I/O error" in cause or "No space left" in cause:
        return DatabaseFull(f"{name}: the disk is full: {cause}")
    if "file is not a database" in cause or "malformed" in cause:
        return DataError(f"is not a database, or is damaged: {cause}", path=name)
    if "readonly database" in cause or "unable to open" in cause:
        return UsageError(f"{name}: the database cannot be written: {cause}")
    if isinstance(error, OperationalError):
        return ResourceError(f"{name}: the database does not answer: {cause}")
    return error


def _engine(address: str, sqlite_file: Path | None) -> Engine:
    if sqlite_file is not None:
        engine = create_engine(
            f"sqlite:///{os.fspath(sqlite_file)}",
            connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False},
            pool_size=8,
            max_overflow=64,
            hide_parameters=True,  # error messages, which are logged, do not quote people
        )
        event.listen(engine, "connect", _prepare_sqlite)
        return engine
    try:
        url = make_url(address)
        if url.get_backend_name() not in POSTGRES:
            raise UsageError(
                f"database {url.render_as_string()}: expected"
                " postgresql://USER:PASSWORD@HOST/DATABASE; without it, the study uses SQLite"
            )
        return create_engine(
            url.set(drivername="postgresql+psycopg"),
            pool_size=POSTGRES_CONNECTIONS,
            max_overflow=30,
            hide_parameters=True,
        )
    except (ArgumentError, NoSuchModuleError) as error:
        raise UsageError(f"database {address!r}: {error}") from None
    except ModuleNotFoundError:
        raise missing_extra("annotate", "psycopg", task="a PostgreSQL database") from None


def _prepare_sqlite(connection: Any, _: object) -> None:
    # the driver must not begin transactions by itself: writing() does
    connection.isolation_level = None
    cursor = connection.cursor()
    for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {setting}")
    cursor.close()
