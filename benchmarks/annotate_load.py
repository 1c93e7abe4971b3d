"""Many people who rate in a study of Rejoinder at once: a light client, and what must be stored.

Hundreds of people fit into one process, because each is a coroutine with one connection
(annotate_http.py), and reads of a page nothing but the code of its task. A person behaves as the
script in a browser does: an answer that was not acknowledged is sent again until it is.
"""

from __future__ import annotations

import asyncio
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from sqlalchemy import Connection, Table, func, select

from annotate_http import Browser
from rejoinder.annotate.dealing import OPEN, WORK
from rejoinder.annotate.schema import answers, leases, tasks
from rejoinder.annotate.store import Store

LEASE = re.compile(rb'name="lease" value="([^"]+)"')
CSRF = re.compile(rb'name="csrf" value="([^"]+)"')
HEADERS = {
    "content-type": "application/x-www-form-urlencoded",
    "rejoinder-request": "fragment",
}
RETRY_SECONDS = 0.05
SERVE = (sys.executable, "-m", "rejoinder", "annotate", "serve")
SETTINGS = """\
kind = "rate"
title = "How appropriate are these replies?"
answers_per_task = {answers}
tasks_per_batch = 10000
[rate]
[[rate.dimensions]]
name = "appropriateness"
question = "How appropriate is the reply?"
scale = [1, 2, 3, 4, 5]
labels = ["Not at all", "Very"]
"""


def write_study(folder: Path, items: int, answers_per_task: int) -> Path:
    """Write a study in which people rate replies of three systems."""
    folder.mkdir(parents=True)
    (folder / "study.toml").write_text(SETTINGS.format(answers=answers_per_task))
    (folder / "instructions.md").write_text("Read the dialogue, then rate the reply.")
    with (folder / "items.jsonl").open("w") as stream:
        for number in range(items):
            context, system = divmod(number, 3)
            stream.write(
                f'{{"id": "{number}", "context_id": "{context}", "system": "system-{system}",'
                f' "context": ["I went to place {context} last week.", "What was it like there?"],'
                f' "response": "It was {system} times better than I thought, really."}}\n'
            )
    return folder


class StudyServer:
    """``rejoinder annotate serve`` in a process of its own, always on the same port."""

    def __init__(self, folder: Path, database: str | None, port: int) -> None:
        self.command = [*SERVE, str(folder), "--port", str(port)]
        self.command += ["--database", database] if database else []
        self.start()

    def start(self) -> None:
        """Start the server and wait until people can connect."""
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        said = ""
        while "Links for people" not in said:
            line = self.process.stderr.readline()
            assert line, f"the server ended: {said}"
            said += line

    def kill(self) -> None:
        """End the process at once, as ``kill -9`` does."""
        self.process.kill()
        self._close()

    def stop(self) -> None:
        self.process.terminate()
        self._close()

    def _close(self) -> None:
        self.process.wait(60)
        assert self.process.stderr is not None
        self.process.stderr.close()


class Refused(Exception):
    """A response that no person should get."""


class Unavailable(Exception):
    """The server says that it can't answer now."""


BROKEN = (OSError, asyncio.IncompleteReadError, TimeoutError)
"""What happens when a server is killed."""


@dataclass
class RatingPerson:
    """A person who opens a secret link and rates one reply after the other."""

    link: str
    rng: random.Random
    acknowledged: list[str] = field(default_factory=list)
    """Codes of the tasks whose answers the server acknowledged."""
    latencies: list[float] = field(default_factory=list)
    """Seconds from sending an answer to the end of the next page, without answers that had to be
    sent again."""
    outcomes: Counter[str] = field(default_factory=Counter)
    reconnected: int = 0
    lease: str | None = None

    def __post_init__(self) -> None:
        self.browser = Browser(self.link)
        self.csrf = self.outcome = ""

    async def enter(self) -> None:
        """Open the link, read the instructions and get the first task."""
        await self._exchange("GET", self.browser.address.path)
        page = await self._exchange("GET", "/")
        self.csrf = self._found(CSRF, page) or ""
        await self._exchange("POST", "/start", {"csrf": self.csrf})
        self.lease = self._found(LEASE, await self._exchange("GET", "/"))

    async def answer(self, again: bool = False) -> None:
        """Rate the current reply; with ``again``, until it is acknowledged, whatever happens."""
        assert self.lease is not None
        form = {
            "csrf": self.csrf,
            "lease": self.lease,
            "seconds": "3.5",
            "appropriateness-0": str(self.rng.randint(1, 5)),
        }
        sent = self.reconnected
        began = time.perf_counter()
        while True:
            try:
                page = await self._exchange("POST", "/answer", form)
                break
            except (*BROKEN, Unavailable):
                if not again:
                    raise
                self.reconnected += 1
                await self.close()
                await asyncio.sleep(RETRY_SECONDS)
        if sent == self.reconnected:
            self.latencies.append(time.perf_counter() - began)
        if self.outcome not in ("stored", "repeated", "late"):
            raise Refused(f"an answer was {self.outcome or 'not acknowledged'}")
        self.outcomes[self.outcome] += 1
        self.acknowledged.append(self.lease)
        self.lease = self._found(LEASE, page)

    def _found(self, pattern: re.Pattern[bytes], page: bytes) -> str | None:
        found = pattern.search(page)
        return found[1].decode() if found else None

    async def _exchange(self, method: str, path: str, form: dict[str, str] | None = None) -> bytes:
        """Send a request and return the body of the response."""
        headers = HEADERS if form is not None else {}
        response = await self.browser.request(method, path, urlencode(form or {}).encode(), headers)
        if response.status >= 500:
            raise Unavailable(f"status {response.status}")
        if response.status not in (200, 303):
            raise Refused(f"{method} {path.partition('/p/')[0]}: status {response.status}")
        self.outcome = response.headers.get("rejoinder-answer", "")
        return response.content

    async def close(self) -> None:
        await self.browser.close()


@dataclass
class Load:
    """What people did together."""

    people: list[RatingPerson]
    seconds: float = 0.0
    errors: list[str] = field(default_factory=list)

    @property
    def acknowledged(self) -> list[str]:
        """Codes of the tasks whose answers were acknowledged."""
        return [code for person in self.people for code in person.acknowledged]

    @property
    def latencies(self) -> list[float]:
        return [each for person in self.people for each in person.latencies]


async def enter_all(links: Sequence[str], seed: int = 0) -> Load:
    """Let people open their links."""
    load = Load([RatingPerson(link, random.Random(seed + n)) for n, link in enumerate(links)])
    for person in load.people:
        await person.enter()
    return load


async def answer_all(
    load: Load, seconds: float | None, think: float = 0.0, again: bool = False
) -> None:
    """Let all people answer at once, until the time is over or nothing is left to do.

    ``think`` is the mean time between a page and its answer, ``again`` lets people send an answer
    again if the server does not respond.
    """
    began = time.perf_counter()
    until = began + (seconds or 1e9)

    async def work(person: RatingPerson) -> None:
        try:
            while person.lease is not None:
                if think:
                    await asyncio.sleep(person.rng.uniform(0, 2 * think))
                if time.perf_counter() >= until:
                    return
                await person.answer(again)
        except (Refused, Unavailable, *BROKEN) as error:
            load.errors.append(f"{type(error).__name__}: {error}")

    await asyncio.gather(*map(work, load.people))
    load.seconds = time.perf_counter() - began


async def close_all(load: Load) -> None:
    for person in load.people:
        await person.close()


@dataclass(frozen=True)
class Stored:
    """What is in the database."""

    answers: int
    lost: int
    """Acknowledged answers that are not stored."""
    over: int
    """Tasks with more answers than are wanted."""
    under: int
    """Tasks with fewer."""
    misdealt: int
    """Tasks of which more, or fewer, places are taken than there are answers and open leases."""

    @classmethod
    def of(cls, folder: Path, database: str | None, acknowledged: Sequence[str]) -> Stored:
        """Read the database without a server."""
        store = Store.open(folder, database)
        try:
            with store.database.reading() as connection:
                codes = set(
                    connection.scalars(
                        select(leases.c.code).join(answers, answers.c.lease == leases.c.id)
                    )
                )
                rows = connection.execute(
                    select(tasks.c.id, tasks.c.answers, tasks.c.taken, tasks.c.wanted).where(
                        tasks.c.phase == WORK
                    )
                ).all()
                given = _by_task(connection, answers, answers.c.phase == WORK)
                held = _by_task(connection, leases, leases.c.state == OPEN)
        finally:
            store.close()
        return cls(
            sum(given.values()),
            len(set(acknowledged) - codes),
            sum(given[row.id] > row.wanted for row in rows),
            sum(given[row.id] < row.wanted for row in rows),
            sum(
                row.taken != given[row.id] + held[row.id] or row.answers != given[row.id]
                for row in rows
            ),
        )


def _by_task(connection: Connection, table: Table, *conditions: Any) -> Counter[int]:
    """Return how many rows of a table belong to each task."""
    rows = connection.execute(
        select(table.c.task, func.count()).where(*conditions).group_by(table.c.task)
    )
    return Counter({int(row[0]): int(row[1]) for row in rows})
