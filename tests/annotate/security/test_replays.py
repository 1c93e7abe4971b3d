"""The same request many times, one after the other and at the same moment, counts once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest
from sqlalchemy import select
from starlette.testclient import TestClient

from annotate.rating_studies import make_study, open_store
from annotate.web.client import Person, Researcher, hidden_fields
from rejoinder.annotate import schema
from rejoinder.annotate.store import Store
from rejoinder.annotate.web.app import make_app

T = TypeVar("T")
SETTINGS = "answers_per_task = 3\ntasks_per_batch = 2\n[people]\nsign_up = 'platform'\n"


@pytest.fixture
def store(tmp_path: Path, address: str | None) -> Store:
    return open_store(make_study(tmp_path / "study", settings=SETTINGS), address)


def at_once(work: Callable[[], T], times: int = 16) -> list[T]:
    """Call a function in several threads at the same moment."""
    with ThreadPoolExecutor(times) as pool:
        return [each.result() for each in [pool.submit(work) for _ in range(times)]]


def test_an_answer_sent_many_times_at_once_is_one(store: Store) -> None:
    person = Person(store).begin()
    form = {**hidden_fields(person.page()), "appropriateness-0": "4"}
    outcomes = at_once(
        lambda: person.browser.post("/answer", data=form).headers["rejoinder-answer"]
    )
    assert Counter(outcomes) == {"stored": 1, "repeated": 15}
    # another answer under the same code does not replace the first
    changed = person.browser.post("/answer", data={**form, "appropriateness-0": "1"})
    assert changed.headers["rejoinder-answer"] == "repeated"
    (answer,) = store.stored_answers()
    assert answer.value == {"ratings": [{"appropriateness": 4}]}
    with store.database.reading() as connection:
        assert connection.scalars(select(schema.people.c.answers)).all() == [1]
        assert sum(connection.scalars(select(schema.tasks.c.answers))) == 1
        assert sum(connection.scalars(select(schema.tasks.c.taken))) == 2  # and the next task


def test_steps_sent_many_times_at_once_are_one_step(store: Store) -> None:
    person = Person(store)
    start = hidden_fields(person.page())
    codes = at_once(lambda: person.browser.post("/start", data=start).status_code)
    assert set(codes) == {303}
    leases = at_once(lambda: hidden_fields(person.browser.get("/").text)["lease"])
    assert len(set(leases)) == 1
    for _ in range(2):
        person.send("/answer", {"appropriateness-0": "4"})
    form = hidden_fields(person.page())
    assert "lease" not in form  # the batch is done
    at_once(lambda: person.browser.post("/continue", data=form).status_code)
    with store.database.reading() as connection:
        assert connection.scalars(select(schema.people.c.batch_end)).all() == [4]


def test_a_person_of_a_platform_who_comes_many_times_at_once_is_one(store: Store) -> None:
    app = make_app(store)
    codes = at_once(
        lambda: TestClient(app, follow_redirects=False).get("/join?PROLIFIC_PID=5a").status_code
    )
    assert set(codes) <= {303, 429}
    assert list(store.labels().values()) == ["5a"]


def test_excluding_many_times_at_once_returns_tasks_once(store: Store) -> None:
    person = Person(store).begin()
    person.send("/answer", {"appropriateness-0": "4"})
    researcher = Researcher(store)
    form = {"csrf": hidden_fields(researcher.page())["csrf"], "person": "1"}
    for action, answers in (("exclude", 0), ("include", 1), ("exclude", 0), ("include", 1)):
        path = f"/study/{action}"
        at_once(lambda path=path: researcher.browser.post(path, data=form).status_code)
        with store.database.reading() as connection:
            assert sum(connection.scalars(select(schema.tasks.c.answers))) == answers
            assert sum(connection.scalars(select(schema.tasks.c.taken))) == answers
        assert len(store.stored_answers()) == answers
