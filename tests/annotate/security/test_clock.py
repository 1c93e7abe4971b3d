"""A clock that jumps: leases, times of answers and dealing go on evenly."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from sqlalchemy import select

from annotate.rating_studies import (
    FakeClock,
    answer_all,
    form,
    items,
    join,
    make_study,
    open_store,
    rate_five,
)
from annotate.server import Browser, running_server
from rejoinder.annotate import schema
from rejoinder.annotate.clock import Clock
from rejoinder.annotate.status import study_status
from rejoinder.annotate.store import Store

DAY = 86_400.0
SITE = """
import os, time
_real, _file = time.time, os.environ["CLOCK_FILE"]
time.time = lambda: _real() + float(open(_file).read())
"""
"""Sets the clock of a process by a number of seconds in a file."""


def test_a_clock_runs_on_when_the_machine_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    wall, even = [1_000_000.0], [50.0]
    monkeypatch.setattr(time, "time", lambda: wall[0])
    monkeypatch.setattr(time, "monotonic", lambda: even[0])
    clock = Clock()
    assert clock.now() == 1_000_000.0
    for jump in (-DAY, 10 * DAY, -1_000_000.0):
        wall[0] += jump
        even[0] += 1
        assert clock.now() == 1_000_000.0 + even[0] - 50
    # set back before the next start: time goes on from the latest entry of the database
    assert Clock(latest=1_000_003.0).now() == 1_000_003.0
    wall[0] = 2_000_000.0
    assert Clock(latest=1_000_003.0).now() == 2_000_000.0


def check_counts(store: Store) -> None:
    """No task is dealt out to more people than wanted, and its counts are right."""
    with store.database.reading() as connection:
        tasks = connection.execute(select(schema.tasks)).all()
        open_ = connection.scalars(
            select(schema.leases.c.task).where(schema.leases.c.state == "open")
        ).all()
        counted = connection.scalars(
            select(schema.answers.c.task).where(schema.answers.c.state == "counted")
        ).all()
    for task in tasks:
        assert task.answers == counted.count(task.id)
        assert task.taken == open_.count(task.id) + task.answers <= task.wanted


@pytest.mark.parametrize("jump", [-DAY, -60.0, 60.0, DAY])
def test_leases_when_time_jumps_between_two_requests(
    tmp_path: Path, address: str | None, jump: float
) -> None:
    """The store's own clock does not jump; this is what would happen if it did."""
    clock = FakeClock()
    folder = make_study(
        tmp_path / "study",
        settings="answers_per_task = 1\nlease_minutes = 5",
        records=items(contexts=1),
    )
    store = open_store(folder, address, clock)
    ann, bob = join(store, "ann"), join(store, "bob")
    step = store.next_step(ann)
    clock.time += jump
    check_counts(store)
    answer_all(store, bob)  # with a jump forward, the task of ann, too
    check_counts(store)
    outcome = store.submit(ann, form(step, rate_five(step))).outcome
    assert outcome == ("late" if jump == DAY else "stored")
    check_counts(store)
    assert [answer.seconds >= 0 for answer in store.stored_answers()] == [True] * 3
    assert study_status(store).complete == 3


def test_a_server_whose_machine_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set back while a server runs, back a day before the next start, then forward a month."""
    offset = tmp_path / "clock"
    offset.write_text("0")
    (tmp_path / "sitecustomize.py").write_text(SITE)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setenv("CLOCK_FILE", str(offset))
    folder = make_study(
        tmp_path / "study",
        settings="answers_per_task = 1\nlease_minutes = 60",
        records=items(contexts=4),
    )
    store = open_store(folder)
    tokens = store.invite(["ann", "bob"])

    def rate(page: str) -> dict[str, str]:
        return {"appropriateness-0": "3"}

    with running_server(folder) as server:
        ann, bob = (Browser(f"{server.address}/p/{token}") for token in tokens)
        for person in (ann, bob):
            person.post("/start")
        offset.write_text(str(-DAY))  # while the server runs
        assert ann.answer_all(rate, most=2) == 2
        kept = ann.lease, bob.lease
    for seconds, expected in ((-DAY, kept), (30 * DAY, None)):
        offset.write_text(str(seconds))
        with running_server(folder) as server:
            before = ann.lease, bob.lease
            for person in (ann, bob):
                person.address = server.address
                person.page = person.client.get(server.address)
            if expected is not None:  # nobody's lease has expired, or was given to the other
                assert (ann.lease, bob.lease) == expected
            assert ann.lease != bob.lease
            # answers that were written before the jump are accepted, once
            for person, lease in zip((ann, bob), before, strict=True):
                for _ in range(2):
                    person.post("/answer", lease=str(lease), **rate(""))
                    assert person.page.status_code == 200
    with running_server(folder) as server:
        for person in (ann, bob):
            person.address = server.address
            person.page = person.client.get(server.address)
            person.answer_all(rate)
    for person in (ann, bob):
        person.close()
    check_counts(store)
    answers = store.stored_answers()
    status = study_status(store)
    assert (len(answers), status.complete) == (12, 12)
    times = [answer.received for answer in answers]
    assert times == sorted(times)
    assert all(0 <= answer.seconds <= 31 * DAY for answer in answers)
