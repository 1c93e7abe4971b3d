"""Dealing out: k answers per task, nobody twice, balanced, safe for many at once."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import select

from annotate.rating_studies import (
    RATE,
    FakeClock,
    answer_all,
    form,
    items,
    join,
    make_study,
    open_store,
    rate_five,
)
from rejoinder.annotate.schema import leases, tasks
from rejoinder.annotate.store import Store


def counts(store: Store) -> Counter[int]:
    """How many tasks have how many answers."""
    per_task = Counter(answer.key for answer in store.stored_answers())
    return Counter(per_task.values())


def check_places(store: Store) -> None:
    """``taken`` and ``answers`` of every task agree with the leases."""
    with store.database.reading() as connection:
        for task in connection.execute(select(tasks)):
            own = connection.scalars(select(leases.c.state).where(leases.c.task == task.id)).all()
            states = Counter(own)
            assert task.taken == states["open"] + states["answered"]
            assert task.answers == states["answered"]


def test_every_task_gets_exactly_the_wanted_answers(tmp_path: Path, address: str | None) -> None:
    store = open_store(make_study(tmp_path / "study"), address)
    done = [answer_all(store, join(store, name)) for name in "abcd"]
    # 4 contexts × 3 systems = 12 tasks, 3 answers each: three people do all, the fourth has none
    assert done == [12, 12, 12, 0]
    assert counts(store) == {3: 12}
    check_places(store)


def test_nobody_gets_a_task_twice(tmp_path: Path, address: str | None) -> None:
    store = open_store(make_study(tmp_path / "study"), address)
    for name in "abc":
        answer_all(store, join(store, name))
    pairs = [(answer.person, answer.key) for answer in store.stored_answers()]
    assert len(set(pairs)) == len(pairs) == 36


def test_many_people_at_once(tmp_path: Path, address: str | None) -> None:
    folder = make_study(
        tmp_path / "study", settings="answers_per_task = 4", records=items(contexts=8)
    )
    store = open_store(folder, address)
    people = [join(store, f"person {number}") for number in range(16)]
    failures: list[BaseException] = []

    def work(person: int) -> None:
        try:
            answer_all(store, person)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(person,)) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert counts(store) == {4: 24}
    check_places(store)


def test_work_is_balanced_over_systems_and_contexts(tmp_path: Path) -> None:
    folder = make_study(
        tmp_path / "study", settings="answers_per_task = 1", records=items(contexts=12)
    )
    store = open_store(folder)
    for name in "abc":
        # 9 of 36 tasks, of 3 systems and 12 contexts: 3 of each system, no context twice
        person = join(store, name)
        assert answer_all(store, person, most=9) == 9
        own = [answer.content for answer in store.stored_answers() if answer.person == name]
        assert set(Counter(c["replies"][0]["system"] for c in own).values()) == {3}
        assert max(Counter(c["context"][0] for c in own).values()) == 1


def test_tasks_and_contexts_are_complete_early(tmp_path: Path) -> None:
    folder = make_study(
        tmp_path / "study", settings="answers_per_task = 2", records=items(contexts=100)
    )
    store = open_store(folder)
    for name in "ab":  # 60 of 300 tasks each, of 3 systems
        answer_all(store, join(store, name), most=60)
    assert counts(store) == {2: 60}  # the second person answers what the first has begun
    contexts = Counter(answer.content["context"][0] for answer in store.stored_answers())
    # 60 tasks are 20 contexts of 3 replies, all with 2 answers
    assert Counter(contexts.values()) == {6: 20}


def test_an_abandoned_task_returns(tmp_path: Path, address: str | None) -> None:
    clock = FakeClock()
    folder = make_study(
        tmp_path / "study",
        settings="answers_per_task = 1\nlease_minutes = 10",
        records=items(contexts=1, systems=["one"]),
    )
    store = open_store(folder, address, clock)
    first, second = join(store, "first"), join(store, "second")
    step = store.next_step(first)
    assert step.step == "task"
    assert store.next_step(second).step == "done"  # the only task is taken
    clock.time += 601
    again = store.next_step(second)
    assert again.step == "task"
    reply, _ = store.submit_and_continue(second, form(again, rate_five(again)))
    assert reply.outcome == "stored"
    # the first comes back too late: the answer is kept, but does not count
    late, _ = store.submit_and_continue(first, form(step, rate_five(step)))
    assert late.outcome == "late"
    assert counts(store) == {1: 1}
    assert len(store.stored_answers(with_late=True)) == 2


def test_a_late_answer_counts_if_nobody_else_has_the_task(tmp_path: Path) -> None:
    clock = FakeClock()
    folder = make_study(
        tmp_path / "study",
        settings="answers_per_task = 1\nlease_minutes = 10",
        records=items(contexts=1, systems=["one"]),
    )
    store = open_store(folder, clock=clock)
    person = join(store, "slow")
    step = store.next_step(person)
    clock.time += 3600
    store.return_expired()
    reply, _ = store.submit_and_continue(person, form(step, rate_five(step)))
    assert reply.outcome == "stored"
    assert counts(store) == {1: 1}
    check_places(store)


def test_who_comes_back_goes_on_with_the_same_task(tmp_path: Path, address: str | None) -> None:
    store = open_store(make_study(tmp_path / "study"), address)
    person = join(store, "ann")
    first, second = store.next_step(person), store.next_step(person)
    assert first.lease.code == second.lease.code
    assert first.lease.view == second.lease.view


def test_a_form_that_is_sent_twice_is_one_answer(tmp_path: Path, address: str | None) -> None:
    store = open_store(make_study(tmp_path / "study"), address)
    person = join(store, "ann")
    step = store.next_step(person)
    outcomes = [store.submit(person, form(step, rate_five(step))).outcome for _ in range(3)]
    assert outcomes == ["stored", "repeated", "repeated"]
    assert len(store.stored_answers()) == 1


def test_someone_elses_lease_is_unknown(tmp_path: Path) -> None:
    store = open_store(make_study(tmp_path / "study"))
    ann, bob = join(store, "ann"), join(store, "bob")
    step = store.next_step(ann)
    assert store.submit(bob, form(step, rate_five(step))).outcome == "unknown"
    assert store.submit(bob, {"lease": "x"}).outcome == "unknown"
    assert store.stored_answers() == []


def test_excluded_people_make_room_and_come_back(tmp_path: Path, address: str | None) -> None:
    store = open_store(make_study(tmp_path / "study", settings="answers_per_task = 1"), address)
    ann, bob = join(store, "ann"), join(store, "bob")
    assert answer_all(store, ann) == 12
    assert answer_all(store, bob) == 0
    store.exclude(ann, True)
    assert store.next_step(ann).step == "excluded"
    assert store.stored_answers() == []
    assert answer_all(store, bob, most=5) == 5
    store.exclude(ann, False)
    assert Counter(a.person for a in store.stored_answers()) == {"ann": 12, "bob": 5}


@pytest.mark.parametrize("layout", ["reply", "context"])
def test_the_same_seed_gives_the_same_views(tmp_path: Path, layout: str) -> None:
    views = []
    for name in ("one", "two"):
        table = RATE.replace('"reply"', f'"{layout}"')
        store = open_store(make_study(tmp_path / name, table))
        answer_all(store, join(store, "ann"))
        views.append([(a.key, a.view) for a in store.stored_answers()])
    assert views[0] == views[1]


def test_a_batch_ends_and_a_limit_stops(tmp_path: Path) -> None:
    settings = "answers_per_task = 3\ntasks_per_batch = 4\n[people]\nmax_tasks = 6\n"
    store = open_store(make_study(tmp_path / "study", settings=settings))
    person = join(store, "ann")
    step = store.next_step(person)
    for _ in range(4):
        _, step = store.submit_and_continue(person, form(step, rate_five(step)))  # type: ignore[assignment]
    assert (step.step, step.done) == ("batch", 4)
    store.next_batch(person)
    assert answer_all(store, person) == 2
    assert store.next_step(person).step == "done"


def test_a_paused_study_deals_out_nothing_but_takes_answers(tmp_path: Path) -> None:
    store = open_store(make_study(tmp_path / "study"))
    person = join(store, "ann")
    step = store.next_step(person)
    store.pause(True)
    assert store.next_step(person).step == "paused"
    reply, following = store.submit_and_continue(person, form(step, rate_five(step)))
    assert (reply.outcome, following.step) == ("stored", "paused")
    store.pause(False)
    assert store.next_step(person).step == "task"
