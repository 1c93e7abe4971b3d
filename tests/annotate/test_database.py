"""Transactions: committed together, undone alone, refused when the disk is full."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from annotate.rating_studies import answer_all, join, make_study, open_store
from rejoinder.annotate.database import Database, DatabaseFull, TryAgain
from rejoinder.errors import UsageError
from support import in_a_thread


@pytest.fixture
def database(tmp_path: Path):
    made = Database("", sqlite_file=tmp_path / "test.sqlite")
    with made.writing() as connection:
        connection.execute(text("CREATE TABLE t (x INTEGER PRIMARY KEY)"))
    yield made
    made.close()


def rows(database: Database) -> list[int]:
    with database.reading() as connection:
        return list(connection.scalars(text("SELECT x FROM t ORDER BY x")))


def add(number: int):
    def work(connection: Connection) -> int:
        connection.execute(text("INSERT INTO t VALUES (:x)"), {"x": number})
        if number % 7 == 0:
            raise ValueError(number)
        return number

    return work


def test_one_that_fails_does_not_undo_the_others(database: Database) -> None:
    results: dict[int, object] = {}

    def run(number: int) -> None:
        try:
            results[number] = database.write(add(number))
        except ValueError as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = [number for number in range(50) if number % 7]
    assert rows(database) == expected
    assert sorted(n for n, result in results.items() if result == n) == expected
    assert all(isinstance(results[n], ValueError) for n in range(0, 50, 7))


def test_calls_that_wait_share_a_commit(database: Database) -> None:
    commits = []
    begin = database._commit

    def counted(jobs):
        commits.append(len(jobs))
        time.sleep(0.02)
        begin(jobs)

    database._commit = counted
    threads = [
        threading.Thread(target=database.write, args=(add(number),))
        for number in range(1, 30)
        if number % 7
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(commits) == len(threads) == len(rows(database))
    assert len(commits) < len(threads) / 2


def test_work_that_asks_for_another_try_gets_it(database: Database) -> None:
    attempts = []

    def work(connection: Connection) -> int:
        attempts.append(1)
        connection.execute(text("INSERT INTO t VALUES (1)"))  # undone if it is tried again
        if len(attempts) < 3:
            raise TryAgain
        return len(attempts)

    assert database.write(work) == 3
    assert rows(database) == [1]


def test_an_event_loop_goes_on_while_it_waits(database: Database) -> None:
    """Work of one event loop: what fails is told to its caller, the rest is stored."""
    attempts: Counter[int] = Counter()

    def work_of(number: int):
        def work(connection: Connection) -> int:
            attempts[number] += 1
            if number % 5 == 0 and attempts[number] < 3:
                raise TryAgain
            return add(number)(connection)

        return work

    async def main() -> list[Any]:
        calls = [database.write_soon(work_of(number)) for number in range(1, 50)]
        return await asyncio.gather(*calls, return_exceptions=True)

    results = in_a_thread(main())
    expected = [number for number in range(1, 50) if number % 7]
    assert rows(database) == expected
    assert [each for each in results if isinstance(each, int)] == expected
    assert all(isinstance(results[n - 1], ValueError) for n in range(7, 50, 7))


def test_who_stops_waiting_does_not_disturb_the_others(database: Database) -> None:
    async def main() -> int:
        first = asyncio.ensure_future(database.write_soon(add(1)))
        second = asyncio.ensure_future(database.write_soon(add(2)))
        await asyncio.sleep(0)  # both are handed over
        first.cancel()
        return await second

    assert in_a_thread(main()) == 2
    assert rows(database) == [1, 2]


def test_closing_stores_what_waits(tmp_path: Path) -> None:
    made = Database("", sqlite_file=tmp_path / "test.sqlite")
    with made.writing() as connection:
        connection.execute(text("CREATE TABLE t (x INTEGER PRIMARY KEY)"))
    for _ in range(3):  # it can be used again
        made.write(lambda c: c.execute(text("INSERT INTO t DEFAULT VALUES")))
        made.close()
    assert len(rows(made)) == 3
    made.close()


def test_a_writer_in_another_process_is_waited_for(database: Database) -> None:
    code = (
        "import sqlite3, sys, time\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('BEGIN IMMEDIATE'); c.execute('INSERT INTO t VALUES (100)')\n"
        "print('locked', flush=True); time.sleep(1); c.execute('COMMIT')\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(database.sqlite_file)], stdout=subprocess.PIPE
    )
    assert other.stdout is not None
    assert other.stdout.readline() == b"locked\n"
    database.write(add(1))
    assert rows(database) == [1, 100]
    assert other.wait() == 0
    other.stdout.close()


def test_a_full_disk_stores_nothing_and_says_so(tmp_path: Path) -> None:
    store = open_store(make_study(tmp_path / "study"))
    person = join(store, "ann")
    answer_all(store, person, most=2)
    with store.database.writing() as connection:
        pages = connection.scalar(text("PRAGMA page_count"))
    store.database.engine.dispose()

    from sqlalchemy import event

    @event.listens_for(store.database.engine, "connect")
    def limit(connection, _):  # SQLite answers as on a full disk
        connection.execute(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(DatabaseFull, match="the disk is full"):
        for _ in range(500):
            store.invite(["x" * 500])
    before = len(store.stored_answers())
    with pytest.raises(DatabaseFull):
        for _ in range(500):
            answer_all(store, join(store, "y" * 500))
    assert len(store.stored_answers()) >= before


@pytest.mark.parametrize("address", ["mysql://x/y", "postgresql", "nonsense://", ""])
def test_addresses_that_are_no_postgresql(address: str) -> None:
    with pytest.raises(UsageError, match="database"):
        Database(address)


def test_killed_in_the_middle_of_writing(tmp_path: Path) -> None:
    """What was acknowledged before kill -9 is there, and the database opens."""
    code = (
        "import sys, itertools\nfrom pathlib import Path\n"
        "from sqlalchemy import text\nfrom rejoinder.annotate.database import Database\n"
        "d = Database('', sqlite_file=Path(sys.argv[1]))\n"
        "for n in itertools.count(1):\n"
        "    d.write(lambda c: c.execute(text('INSERT INTO t VALUES (:x)'), {'x': n}))\n"
        "    print(n, flush=True)\n"
    )
    database = Database("", sqlite_file=tmp_path / "test.sqlite")
    with database.writing() as connection:
        connection.execute(text("CREATE TABLE t (x INTEGER PRIMARY KEY)"))
    for _ in range(3):
        with database.writing() as connection:
            connection.execute(text("DELETE FROM t"))
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "test.sqlite")],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        for _ in range(20):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        acknowledged = 20 + len(process.stdout.read().split())
        process.stdout.close()
        stored = rows(database)
        assert stored == list(range(1, len(stored) + 1))
        assert len(stored) in (acknowledged, acknowledged + 1)
    database.close()
