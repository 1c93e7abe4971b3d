"""Comparisons of replies: which pair comes next, when a context is finished, what is exported."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from annotate.studies import answer_all, answer_next, join, make_kind, make_study, no_earlier
from rejoinder.annotate.store import NextStep, Store
from rejoinder.annotate.tasks.compare import Compare
from rejoinder.annotate.tasks.kind import Accepted, Refusal
from rejoinder.annotate.tasks.pair_answers import PairAnswers, pair_of
from rejoinder.errors import DataError
from rejoinder.items import item_from
from rejoinder.meta_evaluation.annotators import AnnotatorLimits
from rejoinder.pairwise.bradley_terry import rate_errors
from rejoinder.pairwise.plan import next_pairs
from rejoinder.verbs.pairs import fit

STUDY = """
kind = "compare"
title = "Pairs"
tasks_per_batch = 1000
[compare]
question = "Which reply is more natural?"
"""


def items(contexts: int = 2, replies: int = 5) -> list[dict]:
    """Replies whose number is their quality."""
    return [
        {
            "id": f"{c}:{n}",
            "context": [f"Turn {c}"],
            "context_id": str(c),
            "response": f"reply {n}",
            "system": f"system-{n}",
        }
        for c in range(contexts)
        for n in range(replies)
    ]


def open_study(folder: Path, settings: str = STUDY, **size: int) -> Store:
    return Store.open(make_study(folder, settings, items(**size)))


def better(store: Store):
    """Prefer the reply with the larger number, as it is shown on the page."""

    def form(step: NextStep) -> dict[str, str]:
        page = store.kind.page(step.task.content, step.lease.view)
        left, right = (int(page[side].removeprefix("reply ")) for side in ("left", "right"))
        return {"winner": "left" if left > right else "right"}

    return form


def test_one_person_judges_every_pair_once(tmp_path: Path) -> None:
    store = open_study(tmp_path, STUDY + "repeated_share = 0.0\n")
    person = join(store, "ann")
    assert answer_all(store, person, better(store)) == 2 * 10  # 5 * 4 / 2 pairs, 2 contexts
    answers = store.stored_answers()
    pairs = {frozenset((answer.content["a"], answer.content["b"])) for answer in answers}
    assert len(pairs) == 20 and all(len({name[0] for name in pair}) == 1 for pair in pairs)
    export = store.kind.export(store.study.items, answers)
    for record in export.records:
        # the better reply won, whatever side it was on
        winner = record["a"] if record["winner"] == "a" else record["b"]
        assert winner == max(record["a"], record["b"])
        assert record["annotator"] == "ann" and record["context_id"] == record["a"][0]
    sides = Counter(answer.view["left"] for answer in answers)
    assert set(sides) == {"a", "b"}
    contexts = [answer.content["a"][0] for answer in answers]
    assert all(set(two) == {"0", "1"} for two in zip(contexts[::2], contexts[1::2], strict=True))
    store.close()


def test_the_planner_chooses_the_pair(tmp_path: Path) -> None:
    settings = STUDY + "repeated_share = 0.0\n"
    store = open_study(tmp_path, settings, contexts=1, replies=8)
    ann, bob = join(store, "ann"), join(store, "bob")
    form = better(store)
    for _ in range(4):
        answer_next(store, ann, form)
        answer_next(store, bob, form)
    answer_next(store, bob, form)
    pending = store.next_step(ann)
    assert pending.task is not None
    asked = pair_of(pending.task.key)
    wins, own = np.zeros((8, 8)), Counter[int]()
    for answer in store.stored_answers():
        i, j = pair_of(answer.key)
        own.update((i, j) if answer.person == "bob" else ())
        i, j = (i, j) if answer.value["winner"] == "a" else (j, i)
        wins[i, j] += 1
    assert own.total() == 2 * 5
    # what bob has judged more than half of what both have
    excess = np.array([max(own[n] - (wins[n].sum() + wins[:, n].sum()) / 2, 0) for n in range(8)])

    def best(excess: np.ndarray) -> set[frozenset[int]]:
        """Return the pairs that may come first: ties are broken at random."""
        rngs = map(np.random.default_rng, range(50))
        plans = (next_pairs(wins, rng, pending=[asked], excess=excess) for rng in rngs)
        return {frozenset((i, j)) for _, i, j in map(next, plans)}

    chosen = store.next_step(bob)
    assert chosen.task is not None
    assert frozenset(pair_of(chosen.task.key)) in best(excess)
    assert not best(excess) & best(np.zeros(8))  # this study tells the two apart
    store.close()


@pytest.mark.parametrize("planned", ["true", "false"])
def test_many_people(tmp_path: Path, planned: str) -> None:
    """Eight people in random order: no pair twice for anybody, and not more than wanted."""
    settings = STUDY + f"repeated_share = 0.3\nshare = 0.6\nplanned = {planned}\n"
    settings = settings.replace("[compare]", "answers_per_task = 3\n[compare]")
    store = open_study(tmp_path, settings, contexts=3, replies=8)
    kind = store.kind
    assert isinstance(kind, Compare)
    people = [join(store, f"person {number}") for number in range(8)]
    rng = np.random.default_rng(5)
    form, waiting = better(store), set(people)
    opened: dict[int, NextStep] = {}
    while waiting:
        person = int(rng.choice(sorted(waiting)))
        if person in opened:  # others have got their pairs in between
            step = opened.pop(person)
            reply = store.submit(person, {**form(step), "lease": step.lease.code})
            assert reply.outcome == "stored"
        elif (step := store.next_step(person)).step == "task":
            opened[person] = step
        else:
            assert step.step == "done"
            waiting.remove(person)
    answers = store.stored_answers()
    judged = Counter((answer.person, answer.key) for answer in answers)
    assert set(judged.values()) == {1}
    by_pair = Counter(answer.key for answer in answers)
    assert {count for key, count in by_pair.items() if not kind.is_repeated(key)} == {1}
    assert {count for key, count in by_pair.items() if kind.is_repeated(key)} == {3}
    # 28 pairs: .6 * 28 = 16.8
    assert Counter(key.split("-")[1] for key in by_pair) == {"0": 17, "1": 17, "2": 17}
    with store.database.reading() as connection:
        count, wanted = kind.expected(connection)
    # 51 pairs, of which 30 % have two more answers: 51 + 30.6
    assert (count, wanted) == (51, 82)
    store.close()


def test_people_at_the_same_moment(tmp_path: Path, address: str | None) -> None:
    """Eight threads: every pair is asked, nobody twice, none more often than wanted."""
    settings = STUDY.replace("[compare]", "answers_per_task = 3\n[compare]")
    folder = make_study(tmp_path, settings + "repeated_share = 0.3\n", items(2, 7))
    store = Store.open(folder, address)
    kind, form = store.kind, better(store)
    assert isinstance(kind, Compare)
    people = [join(store, f"person {number}") for number in range(8)]
    failures: list[BaseException] = []

    def work(person: int) -> None:
        try:
            step = store.next_step(person)
            while step.step == "task":
                sent = {**form(step), "lease": step.lease.code}
                reply, following = store.submit_and_continue(person, sent)
                assert reply.outcome == "stored" and following is not None
                step = following
        except BaseException as error:
            failures.append(error)

    for _ in range(2):  # pairs that others still had when a person was done
        threads = [threading.Thread(target=work, args=(person,)) for person in people]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures
    answers = store.stored_answers()
    assert max(Counter((answer.person, answer.key) for answer in answers).values()) == 1
    by_pair = Counter(answer.key for answer in answers)
    assert by_pair == {
        f"pair-{c}-{i}-{j}": 3 if kind.is_repeated(f"pair-{c}-{i}-{j}") else 1
        for c in range(2)
        for j in range(7)
        for i in range(j)
    }
    store.close()


def test_repeated_pairs_depend_on_the_seed_only(tmp_path: Path) -> None:
    kinds: list[Any] = [
        make_kind(tmp_path / str(n), f"seed = {seed}\n" + STUDY, items())
        for n, seed in enumerate((1, 1, 2))
    ]
    keys = [f"pair-0-{i}-{j}" for i in range(100) for j in range(i)]
    first, same, other = ([kind.is_repeated(key) for key in keys] for kind in kinds)
    assert first == same != other
    # 10 % of 4,950, standard deviation 21
    assert abs(sum(first) - 495) < 100


def test_contexts_stop_when_the_rates_are_certain(tmp_path: Path) -> None:
    settings = STUDY + "repeated_share = 0.0\nmax_error = 0.15\n"
    store = open_study(tmp_path, settings, contexts=1, replies=6)
    person, form = join(store, "ann"), better(store)
    errors = []
    while answer_next(store, person, form).step == "task":
        wins = np.zeros((6, 6))
        for answer in store.stored_answers():
            i, j = pair_of(answer.key)
            i, j = (i, j) if answer.value["winner"] == "a" else (j, i)
            wins[i, j] += 1
        errors.append(rate_errors(wins).mean())
    assert len(errors) < 15
    assert errors[-1] < 0.15 <= min(errors[:-1])
    with store.database.reading() as connection:
        assert store.kind.expected(connection) == (len(errors), len(errors))
    store.close()


def test_a_returned_pair_is_planned_again(tmp_path: Path) -> None:
    store = open_study(tmp_path, STUDY + "repeated_share = 0.0\n", contexts=1, replies=2)
    ann, bob = join(store, "ann"), join(store, "bob")
    assert store.next_step(ann).step == "task"
    assert store.next_step(bob).step == "done"  # the only pair is being asked
    store.exclude(ann, True)
    assert answer_all(store, bob, better(store)) == 1
    store.close()


def test_what_was_read_is_what_is_stored(tmp_path: Path) -> None:
    """The matrix of wins follows answers, exclusions and failed transactions."""
    store = open_study(tmp_path, STUDY + "repeated_share = 0.5\n", contexts=2, replies=5)
    kind, form = store.kind, better(store)
    assert isinstance(kind, Compare)
    people = [join(store, f"person {number}") for number in range(4)]
    kept = PairAnswers()
    rng = np.random.default_rng(3)
    excluded: set[int] = set()

    def check() -> None:
        with store.database.reading() as connection:
            for context in range(2):
                found = kept.of(connection, context, 5)
                anew = PairAnswers().of(connection, context, 5)
                assert np.array_equal(found.wins, anew.wins) and found.people == anew.people
                given = [a for a in store.stored_answers() if a.key.startswith(f"pair-{context}-")]
                assert found.wins.sum() == len(given)
                assert len(found.people) == len({a.person for a in given})

    for _ in range(120):
        person = int(rng.choice(people))
        action = rng.random()
        if action < 0.15:
            store.exclude(person, person not in excluded)
            excluded ^= {person}
        elif action < 0.3:
            step = store.next_step(person)
            if step.step == "task":
                sent = {**form(step), "lease": step.lease.code}

                def fail(connection, person=person, sent=sent) -> None:
                    store._answer(connection, store._hold(connection, person, sent), sent)
                    for context in range(2):
                        kept.of(connection, context, 5)
                    raise ZeroDivisionError

                with pytest.raises(ZeroDivisionError):
                    store.database.write(fail)
        else:
            answer_next(store, person, form)
        check()
    store.close()


def test_no_more_pairs_are_dealt_out_at_once_than_are_asked(
    tmp_path: Path, address: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """10 pairs, of which .3 are asked: of eight people at the same moment, three get one."""
    settings = f"{STUDY}share = 0.3\nplanned = false\nrepeated_share = 0.0\n"
    store = Store.open(make_study(tmp_path, settings, items(1, 5)), address)
    people = [join(store, f"person {number}") for number in range(8)]
    choose = store.kind.next_task

    def slowly(*arguments: Any) -> Any:
        chosen = choose(*arguments)
        time.sleep(0.02)  # long enough for all others to choose a pair meanwhile
        return chosen

    monkeypatch.setattr(store.kind, "next_task", slowly)
    with ThreadPoolExecutor(8) as threads:
        steps = Counter(step.step for step in threads.map(store.next_step, people))
    store.close()
    assert steps == {"task": 3, "done": 5}


def test_equal_texts_are_not_compared(tmp_path: Path) -> None:
    records = items(contexts=1, replies=4)
    records[2]["response"] = records[3]["response"] = "reply 9"
    store = Store.open(make_study(tmp_path, STUDY + "repeated_share = 0.0\n", records))
    assert answer_all(store, join(store, "ann"), better(store)) == 5  # 6 pairs, one of equal texts
    store.close()


def test_more_answers_for_repeated_pairs_later(tmp_path: Path) -> None:
    settings = STUDY + "repeated_share = 1.0\n"
    store = open_study(tmp_path, settings, contexts=1, replies=3)
    for name in ("ann", "bob", "eve"):
        answer_all(store, join(store, name), better(store))
    assert set(Counter(a.key for a in store.stored_answers()).values()) == {2}
    store.close()
    (tmp_path / "study.toml").write_text("answers_per_task = 3\n" + settings)
    store = Store.open(tmp_path)
    for person in (1, 2, 3):
        answer_all(store, person, better(store))
    assert Counter(a.key for a in store.stored_answers()) == {
        "pair-0-0-1": 3,
        "pair-0-0-2": 3,
        "pair-0-1-2": 3,
    }
    store.close()


def test_pages_tell_neither_system_nor_id(tmp_path: Path) -> None:
    store = open_study(tmp_path)
    person = join(store, "ann")
    while (step := answer_next(store, person, better(store))).step == "task":
        page = store.kind.page(step.task.content, step.lease.view)
        assert set(page) == {"context", "left", "right", "question", "ties"}
        assert "system" not in json.dumps(page) and "0:" not in json.dumps(page)
    store.close()


def test_check(tmp_path: Path) -> None:
    kind = make_kind(tmp_path / "ties", STUDY, items())
    for view, form, winner in [
        ({"left": "a"}, "left", "a"),
        ({"left": "a"}, "right", "b"),
        ({"left": "b"}, "left", "b"),
        ({"left": "b"}, "right", "a"),
        ({"left": "b"}, "tie", "tie"),
    ]:
        assert kind.check({}, view, {"winner": form}, no_earlier) == Accepted({"winner": winner})
    strict = make_kind(tmp_path / "strict", STUDY + "ties = false\n", items())
    refused = [Refusal("winner", "not_on_scale")]
    assert strict.check({}, {"left": "a"}, {"winner": "tie"}, no_earlier) == refused
    assert kind.check({}, {"left": "a"}, {"winner": "a"}, no_earlier) == refused
    assert kind.check({}, {"left": "a"}, {}, no_earlier) == [Refusal("winner", "choose_one")]


def test_export_is_what_pairs_fit_reads(tmp_path: Path) -> None:
    store = open_study(tmp_path / "study", replies=6)
    for name in ("ann", "bob"):
        answer_all(store, join(store, name), better(store))
    export = store.kind.export(store.study.items, store.stored_answers())
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in export.records))
    fitted = fit(tmp_path / "study" / "items.jsonl", path)
    mine = [item_from(dict(record)) for record in export.others["items"]]
    assert [item.rating() for item in fitted.items] == [item.rating() for item in mine]
    for context in range(2):
        rates = [item.rating() for item in mine[6 * context : 6 * context + 6]]
        assert rates == sorted(rates)  # the number of a reply is its quality
    review = store.kind.review(store.stored_answers(), AnnotatorLimits(0.2, 0.5))
    assert [each.name for each in review.agreement.annotators] == ["ann", "bob"]
    store.close()


def test_problems(tmp_path: Path) -> None:
    broken = "answers_per_task = 3\n" + STUDY.replace('"Which reply is more natural?"', '" "')
    broken += "share = 0.0\nmax_error = 0.5\nrepeated_share = 0.0\n"
    with pytest.raises(DataError) as raised:
        make_kind(tmp_path / "broken", broken, items())
    assert [line.split(": ")[1] for line in str(raised.value).splitlines()] == [
        "answers_per_task",
        "compare.question",
        "compare.share",
        "compare.max_error",
    ]
    kind = make_kind(tmp_path, STUDY, items())
    alone = [item_from({"id": str(n), "context": [str(n)], "response": "x"}) for n in range(3)]
    assert kind.item_problems(alone) == [
        "no context has two different replies that could be compared; give replies to the same"
        " context the same context_id"
    ]


def test_known_tasks(tmp_path: Path) -> None:
    kind = make_kind(tmp_path, STUDY, items())
    path = tmp_path / "training.jsonl"
    record = {"context": ["Hi"], "replies": ["Hello.", "Cats."]}
    path.write_text(json.dumps({**record, "expected": "a", "explanation": "It greets."}))
    known = kind.known_tasks(str(path))[0]
    content = {**known.content, "expected": known.expected}
    page = kind.page(content, {"left": "b"})
    assert (page["context"], page["left"], page["right"]) == (["Hi"], "Cats.", "Hello.")
    assert kind.is_expected(content, {"winner": "a"})
    assert not kind.is_expected(content, {"winner": "tie"})
    assert kind.expected_fields(content, {"left": "b"}) == {"winner": ["right"]}
    for wrong in ("left", [], ["a", 1]):
        path.write_text(json.dumps({**record, "expected": wrong}))
        with pytest.raises(DataError, match=r"training\.jsonl:1: expected two 'replies'"):
            kind.known_tasks(str(path))
