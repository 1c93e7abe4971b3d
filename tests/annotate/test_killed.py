"""A server that is killed while people answer loses nothing that it has acknowledged."""

from __future__ import annotations

import http.client
import random
import socket
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

from sqlalchemy import func, select

from annotate.server import running_server
from annotate.studies import RATE, make_study, template_records
from rejoinder.annotate.dealing import OPEN, WORK
from rejoinder.annotate.rehearse.browser import Browser
from rejoinder.annotate.schema import answers, leases, tasks
from rejoinder.annotate.store import Store
from rejoinder.verbs import annotate

PEOPLE, WANTED = 6, 3
KILLED_AT = (0.15, 0.4, 0.65)
"""Shares of the answers after which the server is killed."""


class Person:
    """Rates replies; an answer that is not acknowledged is sent again, as the pages do."""

    def __init__(self, link: str, number: int, give_up: threading.Event) -> None:
        self.link, self.rng, self.give_up = link, random.Random(number), give_up
        self.acknowledged: list[str] = []
        self.interrupted = 0
        self.thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        self.browser = Browser(self.link, script=True)
        page = self._load("GET", urlsplit(self.link).path)
        while page.action:
            fields = {name: self.rng.choice(values) for name, values in page.choices.items()}
            page_of, page = page, self._load("POST", page.action, {**page.hidden, **fields})
            if page_of.action == "/answer":
                assert page.outcome in ("stored", "repeated"), page
                self.acknowledged.append(page_of.hidden["lease"])
        self.browser.close()

    def _load(self, method: str, path: str, form: dict[str, str] | None = None):
        while True:
            try:
                return self.browser.open(path) if form is None else self.browser.send(path, form)
            except (OSError, http.client.HTTPException):
                if self.give_up.is_set():
                    raise
                self.interrupted += 1
                self.browser.close()
                time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_nothing_is_lost_when_the_server_is_killed(tmp_path: Path, address: str | None) -> None:
    settings = RATE.replace('title = "Ratings"', f'title = "Ratings"\nanswers_per_task = {WANTED}')
    folder = make_study(tmp_path / "study", settings, template_records(12))
    total = WANTED * 12 * 10  # ten replies to each of twelve contexts
    options = ["--port", str(free_port())]
    options += [] if address is None else ["--database", address]
    give_up = threading.Event()
    with ExitStack() as stack:
        stack.callback(give_up.set)
        server = stack.enter_context(running_server(folder, *options))
        links = annotate.invite(folder, count=PEOPLE, database=address).links
        people = [Person(link, number, give_up) for number, link in enumerate(links)]
        for person in people:
            person.thread.start()
        for share in KILLED_AT:
            while sum(len(person.acknowledged) for person in people) < share * total:
                assert any(person.thread.is_alive() for person in people)
                time.sleep(0.005)
            server.process.kill()
            server.process.wait()
            server = stack.enter_context(running_server(folder, *options))
        for person in people:
            person.thread.join()
    assert sum(person.interrupted for person in people) >= len(KILLED_AT)

    store = Store.open(folder, address)
    with store.database.reading() as connection:
        stored = set(
            connection.scalars(select(leases.c.code).join(answers, answers.c.lease == leases.c.id))
        )
        held = connection.scalar(
            select(func.count()).select_from(leases).where(leases.c.state == OPEN)
        )
        rows = connection.execute(
            select(tasks.c.taken, tasks.c.answers, func.count(answers.c.id))
            .join(answers, answers.c.task == tasks.c.id, isouter=True)
            .where(tasks.c.phase == WORK)
            .group_by(tasks.c.id)
        ).all()
    store.close()
    acknowledged = [code for person in people for code in person.acknowledged]
    assert len(acknowledged) == len(set(acknowledged)) == total
    assert set(acknowledged) == stored
    assert held == 0
    assert [tuple(row) for row in rows] == [(WANTED, WANTED, WANTED)] * 120
