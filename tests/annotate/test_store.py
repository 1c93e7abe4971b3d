"""People, changes of a study, training and test, privacy: what the store promises."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select, text

from annotate.rating_studies import (
    RATE,
    answer_all,
    form,
    items,
    join,
    make_study,
    open_store,
    rate_five,
)
from rejoinder.annotate import schema
from rejoinder.annotate.status import study_status
from rejoinder.errors import DataError, ResourceError, UsageError

KNOWN = [
    {
        "context": ["How are you?"],
        "replies": ["Fine, thanks.", "The blue car."],
        "expected": [[4, 5], [1, 2]],
        "explanation": "The second reply ignores the question.",
    },
    {
        "context": ["Where is the station?"],
        "replies": ["Over there."],
        "expected": [[4, 5]],
        "explanation": "",
    },
]
TRAINING = '[training]\ntraining = "training.jsonl"\ntest = "test.jsonl"\npass_share = 0.6\n'


def with_training(folder: Path) -> Path:
    make_study(folder, settings="answers_per_task = 1\n" + TRAINING)
    for name in ("training", "test"):
        lines = "\n".join(json.dumps(record) for record in KNOWN)
        (folder / f"{name}.jsonl").write_text(lines)
    return folder


def test_training_then_test_then_work(tmp_path: Path, address: str | None) -> None:
    store = open_store(with_training(tmp_path / "study"), address)
    person = join(store, "ann")
    phases = []
    for _ in range(4):
        step = store.next_step(person)
        phases.append((step.phase, step.done, step.total))
        good = {"appropriateness-0": "5", "appropriateness-1": "1"}
        if step.task.content["replies"][step.lease.view["order"][0]]["text"] == "The blue car.":
            good = {"appropriateness-0": "1", "appropriateness-1": "5"}
        reply, following = store.submit_and_continue(person, form(step, good))
        assert reply.outcome == "stored"
        assert (following is None) == (step.phase == "training")  # feedback comes first
    assert phases == [("training", 0, 2), ("training", 1, 2), ("test", 0, 2), ("test", 1, 2)]
    assert store.next_step(person).phase == "work"
    assert store.stored_answers() == []  # neither training nor test is exported


def test_who_fails_the_test_gets_no_work(tmp_path: Path) -> None:
    store = open_store(with_training(tmp_path / "study"))
    person = join(store, "bob")
    for _ in range(4):
        step = store.next_step(person)
        three = {f"appropriateness-{n}": "3" for n in range(len(step.task.content["replies"]))}
        store.submit(person, form(step, three))
    assert store.next_step(person).step == "failed"
    assert store.next_step(person).step == "failed"


def test_what_may_change_while_there_are_answers(tmp_path: Path, address: str | None) -> None:
    folder = make_study(tmp_path / "study", settings="answers_per_task = 1")
    store = open_store(folder, address)
    assert answer_all(store, join(store, "ann")) == 12
    bob = join(store, "bob")
    assert store.next_step(bob).step == "done"
    store.close()
    make_study(folder, settings="answers_per_task = 2\nlease_minutes = 5\ntasks_per_batch = 3")
    store = open_store(folder, address)
    assert store.next_step(bob).step == "task"  # one more answer for each task
    store.close()
    make_study(
        folder,
        RATE.replace("[1, 2, 3, 4, 5]", "[1, 2, 3]"),
        settings="answers_per_task = 1\nseed = 7",
    )
    with pytest.raises(DataError) as caught:
        open_store(folder, address)
    lines = str(caught.value).split("\n")
    assert ["seed:" in line for line in lines] == [False, True, False]
    assert "cannot become less than 2" in lines[0]
    assert "scale" in lines[2]
    assert "study.toml:11:" in lines[2]


def test_other_items_are_refused_once_there_are_answers(tmp_path: Path) -> None:
    folder = make_study(tmp_path / "study", settings="answers_per_task = 1")
    store = open_store(folder)
    store.close()
    make_study(folder, settings="answers_per_task = 1", records=items(contexts=2))
    store = open_store(folder)  # no answers yet: the tasks are made anew
    assert answer_all(store, join(store, "ann")) == 6
    store.close()
    make_study(folder, settings="answers_per_task = 1", records=items(contexts=3))
    with pytest.raises(DataError, match=r"items\.jsonl: has changed since the study began"):
        open_store(folder)


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("99", "version 99 of the format, this program knows"),
        ("0", "unknown version 0"),
        ("new", "unknown version 'new'"),
    ],
)
def test_a_database_of_another_version(
    tmp_path: Path, address: str | None, version: str, message: str
) -> None:
    folder = make_study(tmp_path / "study")
    store = open_store(folder, address)
    with store.database.writing() as connection:
        connection.execute(text(f"UPDATE facts SET value = '{version}' WHERE name = 'version'"))
    store.close()
    with pytest.raises(DataError, match=message):
        open_store(folder, address)


def test_an_older_database_is_brought_up_to_date(
    tmp_path: Path, address: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_study(tmp_path / "study")
    store = open_store(folder, address)
    answer_all(store, join(store, "ann"), most=2)
    store.close()
    monkeypatch.setattr(schema, "VERSION", 3)
    with pytest.raises(DataError, match="unknown version 1"):  # never guessed
        open_store(folder, address)

    def step(column: str) -> Callable[[Connection], None]:
        return lambda c: c.execute(text(f"ALTER TABLE people ADD COLUMN {column} INTEGER")) and None

    monkeypatch.setattr(schema, "MIGRATIONS", {1: step("first"), 2: step("second")})
    store = open_store(folder, address)
    with store.database.reading() as connection:
        assert connection.scalar(text("SELECT value FROM facts WHERE name = 'version'")) == "3"
        assert connection.execute(text("SELECT first, second FROM people")).all() == [(None, None)]
    assert len(store.stored_answers()) == 2
    open_store(folder, address)  # each step once


def test_a_database_of_another_program(tmp_path: Path, address: str | None) -> None:
    folder = make_study(tmp_path / "study")
    store = open_store(folder, address)
    with store.database.writing() as connection:
        for table in reversed(schema.tables.sorted_tables):
            connection.execute(text(f"DROP TABLE {table.name}"))
        connection.execute(text("CREATE TABLE users (id INTEGER)"))
    store.close()
    with pytest.raises(DataError, match="not that of a study"):
        open_store(folder, address)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    folder = make_study(tmp_path / "study")
    (folder / "answers.sqlite").write_bytes(b"not a database" * 1000)
    with pytest.raises(DataError, match="is not a database, or is damaged"):
        open_store(folder)


def test_two_servers(tmp_path: Path, address: str | None) -> None:
    folder = make_study(tmp_path / "study")
    first, second = open_store(folder, address), open_store(folder, address)
    with first.database.only_server():
        with (
            pytest.raises(ResourceError, match="another server uses this database"),
            second.database.only_server(),
        ):
            pass
        second.invite(["ann"])  # verbs work beside a server
    with second.database.only_server():
        pass


@pytest.mark.parametrize("answers_too", [False, True])
def test_forgetting_a_person(tmp_path: Path, address: str | None, answers_too: bool) -> None:
    store = open_store(make_study(tmp_path / "study", settings="answers_per_task = 2"), address)
    ann, bob = join(store, "Ann Smith"), join(store, "bob")
    session = store.start_session(ann)
    step = store.next_step(ann)
    store.submit(ann, {**form(step, rate_five(step)), "comment": "I am Ann Smith"})
    answer_all(store, ann, most=5)
    answer_all(store, bob, most=2)
    pseudonym = store.labels(named=False)[ann]
    store.forget(store.find_person("Ann Smith"), answers_too=answers_too)
    with store.database.reading() as connection:
        for table in schema.tables.sorted_tables:
            assert "Ann Smith" not in str(connection.execute(select(table)).all())
    assert store.session(session) == (False, None)
    people = {answer.person for answer in store.stored_answers()}
    assert people == ({"bob"} if answers_too else {pseudonym, "bob"})
    with pytest.raises(UsageError, match="nobody has this name; there are"):
        store.find_person("Ann Smith")


def test_secrets_are_stored_as_hashes(tmp_path: Path) -> None:
    store = open_store(make_study(tmp_path / "study"))
    (link,) = store.invite(["ann"])
    session = store.start_session(store.person_of_link(link))
    researcher = store.secret("researcher")
    assert researcher is not None
    store.close()
    content = b"".join(path.read_bytes() for path in (tmp_path / "study").glob("answers*"))
    for token in (link, session, researcher):
        assert token.encode() not in content


def test_names_that_two_people_share_are_not_mixed(tmp_path: Path) -> None:
    store = open_store(make_study(tmp_path / "study"))
    for _ in range(2):
        answer_all(store, join(store, "Kim"), most=2)
    people = {answer.person for answer in store.stored_answers()}
    assert len(people) == 2
    assert "Kim" not in people
    with pytest.raises(UsageError, match="2 people have this name: use the pseudonym"):
        store.find_person("Kim")


def test_people_of_a_platform_come_back_as_themselves(tmp_path: Path) -> None:
    settings = 'answers_per_task = 1\n[people]\nsign_up = "platform"\nmax_people = 2\n'
    store = open_store(make_study(tmp_path / "study", settings=settings))
    first = store.sign_up("A1", "A1")
    assert store.sign_up("A1", "A1") == first
    assert store.sign_up("A2", "A2") not in (first, None)
    assert store.sign_up("A3", "A3") is None  # the study is full


def test_status_counts_and_agreement(tmp_path: Path, address: str | None) -> None:
    store = open_store(make_study(tmp_path / "study"), address)
    quality = {"careful": 5, "dull": 3, "rude": 1}

    def by_system(step):
        return {"appropriateness-0": str(quality[step.task.content["replies"][0]["system"]])}

    for name in ("ann", "bob"):
        answer_all(store, join(store, name), by_system)
    status = study_status(store)
    assert (status.tasks, status.complete, status.answers, status.wanted) == (12, 0, 24, 36)
    assert status.agreement.alpha == 1.0
    assert [(each.system, each.mean) for each in status.ranking] == [
        ("careful", 5.0),
        ("dull", 3.0),
        ("rude", 1.0),
    ]
    assert [(p.name, p.answers, p.kappa, p.median_seconds) for p in status.people] == [
        # the browser said 4.5 seconds, but the page was open for less
        ("ann", 12, 1.0, pytest.approx(0, abs=4.5)),
        ("bob", 12, 1.0, pytest.approx(0, abs=4.5)),
    ]
    assert status.seconds_left is not None


def test_no_more_people_sign_up_at_once_than_may(
    tmp_path: Path, address: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = 'answers_per_task = 1\n[people]\nsign_up = "open"\nmax_people = 3\n'
    store = open_store(make_study(tmp_path / "study", settings=settings), address)
    add = store.add_person

    def slowly(*arguments: Any) -> tuple[int, str]:
        time.sleep(0.02)  # long enough for all others to count the people meanwhile
        return add(*arguments)

    monkeypatch.setattr(store, "add_person", slowly)
    with ThreadPoolExecutor(8) as threads:
        signed_up = list(threads.map(store.sign_up, [f"person {number}" for number in range(8)]))
    assert sum(person is not None for person in signed_up) == 3
    assert len(store.labels()) == 3


def test_rows_have_the_columns_of_their_tables() -> None:
    for row, table in (
        (schema.PersonRow, schema.people),
        (schema.TaskRow, schema.tasks),
        (schema.LeaseRow, schema.leases),
    ):
        assert row._fields == tuple(table.c.keys())
