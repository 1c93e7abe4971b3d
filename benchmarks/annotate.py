"""The study server under load, killed under load, and against Potato and Label Studio.

    python benchmarks/annotate.py [load] [killed] [peers] [pairs]

- load: 200 people at once for a minute, each with a second to think, then as fast as they can until
  every task has its 3 answers, on SQLite and on PostgreSQL: no error, every acknowledged answer is
  stored, no task has more or fewer answers than wanted.
- killed: ``kill -9`` of the server ten times while 50 people answer, on both databases.
- peers: the same script of answers for Rejoinder, Potato and Label Studio, 200 people at once who
  do not think: answers a second, latency, memory, and seconds from the command to the first page.
  Potato has files and is held against ours with SQLite; Label Studio and ours have PostgreSQL.
- pairs: planned pairs need at most half as many answers as random ones, with 8 people at once.

People are on the same two cores as the server.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
from sqlalchemy import select

from annotate_load import (
    HEADERS,
    LEASE,
    Load,
    Stored,
    StudyServer,
    answer_all,
    close_all,
    enter_all,
    write_study,
)
from annotate_peers import (
    Answers,
    LabelStudio,
    Person,
    Potato,
    Program,
    Server,
    answer,
    first_page,
    free_port,
)
from annotate_peers import Load as PeerLoad
from memory import resident
from private_postgres import PrivatePostgres, missing_programs
from rejoinder.annotate.rehearse.kinds.compare import CompareBehaviour
from rejoinder.annotate.rehearse.run import rehearse
from rejoinder.annotate.schema import answers, leases, names
from rejoinder.annotate.store import Store
from rejoinder.annotate.tasks.compare import Compare
from rejoinder.pairwise.simulate import VIEW, rates_by_counting
from rejoinder.verbs import annotate
from table import show

PEOPLE, THINK_SECONDS, LOAD_SECONDS = 200, 1.0, 60.0
TASKS, WANTED = 5000, 3
KILLS, KILLED_PEOPLE, KILLED_TASKS = 10, 50, 2000
KILL_THINK_SECONDS = 0.2
PEER_PEOPLE, PEER_SECONDS, PEER_ITEMS = 200, 20, 500
JUDGES, REPLIES, SHARE = 8, 100, 0.12
SEEDS = range(100, 130)
"""DISCOUNT of rejoinder/pairwise/plan.py was chosen on other ones."""
DATABASES = ("SQLite", "PostgreSQL")

TOKEN = re.compile(rb'name="csrf" value="([^"]+)"')
STUDY = """kind = "rate"
title = "Appropriateness of replies"
answers_per_task = 1000
tasks_per_batch = 10000
[people]
sign_up = "open"
[rate]
[[rate.dimensions]]
name = "appropriateness"
question = "How appropriate is the reply?"
scale = [1, 2, 3, 4, 5]
labels = ["not at all", "very"]
"""
PAIRS = """kind = "compare"
title = "Which reply is better?"
answers_per_task = 1
tasks_per_batch = 10000
[compare]
question = "Which reply is better?"
ties = false
planned = {planned}
share = {share}
repeated_share = 0.0
"""


@contextmanager
def database(kind: str) -> Iterator[str | None]:
    """Yield the address of a new database; None is SQLite in the study's folder."""
    if kind == "SQLite":
        yield None
        return
    postgres = PrivatePostgres()
    try:
        yield address_of(postgres)
    finally:
        postgres.stop()


def address_of(postgres: PrivatePostgres | None) -> str | None:
    """Return the address of a database; None is SQLite in the study's folder."""
    return f"postgresql://postgres@/postgres?host={postgres.folder}" if postgres else None


def milliseconds(latencies: list[float]) -> str:
    median, high, top = 1000 * np.quantile(latencies, (0.5, 0.95, 0.99))
    return f"{median:.0f} ms in the median, 95 % {high:.0f}, 99 % {top:.0f}"


def stored_row(name: str, stored: Stored, load: Load) -> dict[str, Any]:
    """Return the row of a load: nothing is lost, and each task has exactly what is wanted."""
    for error in load.errors[:5]:
        print(error, file=sys.stderr)
    exact = not (stored.lost or stored.over or stored.under or stored.misdealt)
    acknowledged = len(set(load.acknowledged))
    return {
        "name": f"{name}; {len(load.errors)} errors, {stored.lost} answers lost, {stored.over}"
        f" tasks with too many answers, {stored.under} with too few:"
        " stored over acknowledged answers",
        "ours_seconds": stored.answers,
        "peer_seconds": acknowledged,
        "ratio": stored.answers / max(acknowledged, 1),
        "required": 1,
        "enough": exact and not load.errors,
    }


def load(kind: str) -> Iterator[dict[str, Any]]:
    """200 people at once, first with time to think, then without."""

    async def work(links: list[str], server: StudyServer) -> tuple[Load, str]:
        people = await enter_all(links)
        await answer_all(people, LOAD_SECONDS, THINK_SECONDS)
        told = f"{len(people.latencies) / people.seconds:.0f} answers a second,"
        told += f" {milliseconds(people.latencies)}"
        for person in people.people:
            person.latencies.clear()
        await answer_all(people, None)
        told += f"; without thinking {len(people.latencies) / people.seconds:.0f} a second,"
        told += f" {milliseconds(people.latencies)}; {1024 * resident(server.process.pid):.0f} MB"
        await close_all(people)
        return people, told

    with tempfile.TemporaryDirectory() as name, database(kind) as address:
        folder = write_study(Path(name) / "study", TASKS, WANTED)
        server = StudyServer(folder, address, free_port())
        try:
            links = annotate.invite(folder, count=PEOPLE, database=address).links
            people, told = asyncio.run(work(links, server))
        finally:
            server.stop()
        stored = Stored.of(folder, address, people.acknowledged)
    yield stored_row(f"{kind}, {PEOPLE} people at once: {told}", stored, people)


def killed(kind: str) -> Iterator[dict[str, Any]]:
    """Kill the server again and again while people answer and try again, as browsers do."""

    async def kill_again_and_again(server: StudyServer) -> None:
        for _ in range(KILLS):
            await asyncio.sleep(1.0)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)

    async def work(links: list[str], server: StudyServer) -> Load:
        people = await enter_all(links)
        killing = asyncio.create_task(kill_again_and_again(server))
        await answer_all(people, None, KILL_THINK_SECONDS, again=True)
        assert killing.done(), "the study was complete before the last kill"
        await close_all(people)
        return people

    with tempfile.TemporaryDirectory() as name, database(kind) as address:
        folder = write_study(Path(name) / "study", KILLED_TASKS, WANTED)
        server = StudyServer(folder, address, free_port())
        try:
            links = annotate.invite(folder, count=KILLED_PEOPLE, database=address).links
            people = asyncio.run(work(links, server))
        finally:
            server.stop()
        stored = Stored.of(folder, address, people.acknowledged)
    again = sum(person.outcomes["repeated"] for person in people.people)
    told = f"{kind}, kill -9 of the server {KILLS} times while {KILLED_PEOPLE} people answer"
    yield stored_row(f"{told}; {again} answers were stored but not acknowledged", stored, people)


class RejoinderPerson(Person):
    """Opens a secret link and answers as the page's script does."""

    def __init__(self, url: str, name: str, link: str) -> None:
        super().__init__(url, name)
        self.link = link

    def log_in(self) -> None:
        self.token = self._found(TOKEN, self.client.get(self.link).content) or ""
        self.page = self.client.post("/start", data={"csrf": self.token}).content
        self.item = self._found(LEASE, self.page)

    async def _send(self, rating: int) -> None:
        fields = {"csrf": self.token, "lease": self.item or "", "seconds": "2"}
        form = urlencode({**fields, "appropriateness-0": rating}).encode()
        reply = self._checked(await self.browser.request("POST", "/answer", form, HEADERS), ())
        assert reply.headers["rejoinder-answer"] in ("stored", "repeated"), reply.headers
        self.page = reply.content

    async def _next(self) -> None:
        """The next task came with the answer."""
        self.item = self._found(LEASE, self.page)

    def _found(self, pattern: re.Pattern[bytes], page: bytes) -> str | None:
        found = pattern.search(page)
        return found[1].decode() if found else None


class Rejoinder(Program):
    """This program. People do not see ids of items, so an answer is known by the code of its
    lease."""

    def __init__(self, kind: str, people: int) -> None:
        self.name = f"Rejoinder with {kind}"
        self.kind, self.people = kind, people
        self.links: dict[str, str] = {}

    def start(self, folder: Path, items: Mapping[str, str], port: int) -> Server:
        began = time.perf_counter()
        with (folder / "items.jsonl").open("w", encoding="utf-8") as stream:
            for name, text in items.items():
                item = {"id": name, "context": ["Hello?"], "response": text}
                stream.write(json.dumps(item) + "\n")
        (folder / "instructions.md").write_text("Read, then rate.")
        (folder / "study.toml").write_text(STUDY)
        postgres = PrivatePostgres() if self.kind == "PostgreSQL" else None
        self.database = address_of(postgres)
        names = [f"person-{number}" for number in range(self.people)]
        address = f"http://127.0.0.1:{port}"
        invited = annotate.invite(folder, names=names, address=address, database=self.database)
        self.links = dict(zip(names, invited.links, strict=True))
        started = time.perf_counter()
        command = [sys.executable, "-m", "rejoinder", "annotate", "serve", str(folder)]
        command += ["--database", self.database] if self.database else []
        process = self.launch([*command, "--port", str(port)], folder, {})
        server = Server(address, folder, [process], postgres)
        server.setup_seconds = started - began
        server.start_seconds = first_page(server, "/join") - started
        return server

    def person(self, server: Server, name: str) -> RejoinderPerson:
        return RejoinderPerson(server.url, name, self.links[name])

    def stored(self, server: Server) -> Answers:
        store = Store.open(server.folder, self.database)
        try:
            with store.database.reading() as connection:
                rows = connection.execute(
                    select(names.c.name, leases.c.code, answers.c.value)
                    .join(leases, leases.c.id == answers.c.lease)
                    .join(names, names.c.person == answers.c.person)
                ).all()
        finally:
            store.close()
        return {(row[0], row[1]): row[2]["ratings"][0]["appropriateness"] for row in rows}


def items(count: int) -> dict[str, str]:
    return {f"reply-{number}": f"This is the reply of number {number}." for number in range(count)}


def measure(program: Program) -> tuple[PeerLoad, Server]:
    """Let people answer; whoever gets an error is counted, and every acknowledged answer must be
    stored."""
    with (
        tempfile.TemporaryDirectory() as name,
        program.running(Path(name), items(PEER_ITEMS)) as server,
    ):
        done = answer(program, server, PEER_PEOPLE, PEER_SECONDS)
        stored = program.stored(server)
    for failure in done.failures[:3]:
        print(f"{program.name}: {failure}", file=sys.stderr)
    missing = sum(stored.get(key) != value for key, value in done.acknowledged.items())
    server.lost = missing
    return done, server


def peers(kinds: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The same answers for all programs, each with its own files or the same database."""
    others = {"SQLite": [Potato()], "PostgreSQL": [LabelStudio("postgresql")]}
    for kind in kinds:
        ours, own_server = measure(Rejoinder(kind, PEER_PEOPLE))
        assert not ours.failures and not own_server.lost, (kind, ours.failures[:3])
        for program in others[kind]:
            theirs, server = measure(program)
            trouble = f"; there {len(theirs.failures)} people got an error, and {server.lost}"
            trouble += " acknowledged answers are not stored"
            for what, mine, other, larger_is_better in (
                ("answers a second", ours.per_second, theirs.per_second, True),
                *(
                    (f"ms of an answer and the next page, {word}", *times, False)
                    for word, times in quantiles(ours.latencies, theirs.latencies)
                ),
                ("MB of memory", ours.resident * 1024, theirs.resident * 1024, False),
                (
                    "seconds from the command to the first page",
                    own_server.start_seconds,
                    server.start_seconds,
                    False,
                ),
            ):
                yield {
                    "name": f"{what}, {PEER_PEOPLE} people at once: {mine:.4g} with {kind};"
                    f" {program.name}: {other:.4g}"
                    f"{trouble if theirs.failures or server.lost else ''}",
                    "ours_seconds": mine,
                    "peer_seconds": other,
                    "ratio": mine / other if larger_is_better else other / mine,
                    "required": 1,
                }


def quantiles(
    ours: Sequence[float], theirs: Sequence[float]
) -> Iterator[tuple[str, tuple[float, float]]]:
    for word, share in (("median", 0.5), ("95 %", 0.95)):
        yield (
            word,
            (1000 * float(np.quantile(ours, share)), 1000 * float(np.quantile(theirs, share))),
        )


def pairs(view: float) -> dict[str, Any]:
    """Half as many planned pairs as random ones; the rates of random pairs are counted, as in the
    paper that drew them (Sugiyama, Meguro & Higashinaka 2019), those of planned ones are fitted."""
    counted, fitted, planned = [], [], []
    asked = half = 0
    for seed in SEEDS:
        asked, by_counting, by_fitting = compared(seed, view, SHARE, planned=False)
        half, _, as_planned = compared(seed, view, SHARE / 2, planned=True)
        assert 2 * half <= asked, (half, asked)
        counted.append(by_counting)
        fitted.append(by_fitting)
        planned.append(as_planned)
    who = "who share an opinion" if not view else "who disagree as in the paper"
    return {
        "name": f"{JUDGES} people at once {who}: correlation of winning rates with the planted"
        f" ones, {half} planned pairs {spread(planned)} against {asked} random ones, which are"
        f" counted, {spread(counted)} (fitted as well {spread(fitted)}), {len(SEEDS)} seeds",
        "ours_seconds": float(np.mean(planned)),
        "peer_seconds": float(np.mean(counted)),
        "ratio": float(np.mean(planned) / np.mean(counted)),
        "required": 1,
    }


def spread(values: Sequence[float]) -> str:
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}"


def compared(seed: int, view: float, share: float, *, planned: bool) -> tuple[int, float, float]:
    """Let simulated people compare replies over HTTP; return the number of answers, and the
    correlation of counted and of fitted winning rates with the planted ones."""
    with tempfile.TemporaryDirectory() as name:
        folder, kept = Path(name) / "study", Path(name) / "kept"
        folder.mkdir()
        (folder / "study.toml").write_text(PAIRS.format(planned=str(planned).lower(), share=share))
        (folder / "instructions.md").write_text("Which reply is better?")
        with (folder / "items.jsonl").open("w") as stream:
            for number in range(REPLIES):
                text = f"Reply {number} of {REPLIES}, seed {seed}"
                item = {"id": str(number), "context": ["Hello?"], "response": text}
                stream.write(json.dumps(item) + "\n")
        found = rehearse(folder, people=JUDGES, careless=0, fast=0, seed=seed, view=view, keep=kept)
        assert not found.errors and not found.lost and found.correlation is not None
        store = Store.open(kept)
        behaviour = CompareBehaviour(store, seed, view)
        assert isinstance(store.kind, Compare)
        (contest,) = store.kind.comparisons(store.stored_answers()).contests()
        rates = rates_by_counting(contest.wins)
        qualities = behaviour.planted_rates([store.study.items[n] for n in contest.members])
        store.close()
        counted = float(np.corrcoef(rates, qualities)[0, 1])
        return found.answers, counted, found.correlation


def run(parts: list[str]) -> Iterator[dict[str, Any]]:
    databases = DATABASES[:1] if missing_programs() else DATABASES
    if "load" in parts:
        for kind in databases:
            yield from load(kind)
    if "killed" in parts:
        for kind in databases:
            yield from killed(kind)
    if "peers" in parts:
        yield from peers(databases)
    if "pairs" in parts:
        yield pairs(0.0)
        yield pairs(VIEW)


if __name__ == "__main__":
    show(run(sys.argv[1:] or ["load", "killed", "peers", "pairs"]))
