"""Studies with a plan: a random choice is asked about in its order, until a question is decided."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

import rejoinder
from annotate.rating_studies import RATE, answer_all, items, join, make_study, open_store
from annotate.server import Browser, running_server
from rejoinder.annotate.schema import tasks
from rejoinder.annotate.settings_file import SettingsProblems
from rejoinder.annotate.store import NextStep, Store
from rejoinder.cli.main import run
from rejoinder.errors import DataError
from rejoinder.verbs import annotate

SYSTEMS = ("careful", "rude")
QUALITY = {"careful": 4.0, "dull": 3.2, "rude": 2.0}


def plan_table(budget: int, **settings: Any) -> str:
    lines = [
        f"{key} = {json.dumps(value)}" for key, value in {"budget": budget, **settings}.items()
    ]
    return "\n".join(["[plan]", *lines]) + RATE


def planned_study(
    folder: Path, budget: int, contexts: int = 30, answers: int = 1, **settings: Any
) -> Path:
    """A study of two systems, with scores of little worth."""
    records = items(contexts, SYSTEMS)
    rng = np.random.default_rng(2)
    folder.mkdir(parents=True, exist_ok=True)
    scores = [
        {"id": each["id"], "metric": "m", "value": QUALITY[each["system"]] + rng.normal()}
        for each in records
    ]
    (folder / "scores.jsonl").write_text("".join(json.dumps(each) + "\n" for each in scores))
    table = plan_table(budget, **{"scores": "scores.jsonl", **settings})
    return make_study(folder, table, settings=f"answers_per_task = {answers}", records=records)


def rating_of(text: str) -> int:
    """What a person thinks of the reply "On day N I was SYSTEM.", the same for everybody."""
    day, system = re.findall(r"On day (\d+) I was (\w+)", text)[-1]
    noise = np.random.default_rng([int(day), len(system)]).normal(0, 0.8)
    return int(np.clip(np.rint(QUALITY[system] + noise), 1, 5))


def rate(step: NextStep) -> dict[str, str]:
    assert step.task is not None
    (reply,) = step.task.content["replies"]
    return {"appropriateness-0": str(rating_of(reply["text"]))}


def replies_of(store: Store) -> list[str]:
    """Ids of the replies of all tasks, in the order of their places."""
    with store.database.reading() as connection:
        rows = connection.execute(select(tasks).order_by(tasks.c.shuffled)).all()
    return [row.content["replies"][0]["item"] for row in rows]


def test_the_tasks_are_those_of_the_plan_in_its_order(tmp_path: Path) -> None:
    folder = planned_study(tmp_path / "s", 20)
    plan = rejoinder.plan(folder / "items.jsonl", budget=20)
    store = open_store(folder)
    chosen = replies_of(store)
    assert len(chosen) == 20
    assert sorted(chosen) == sorted(item.id for item in plan.items)
    in_order = [name.partition(":")[0] for name in chosen]
    assert in_order[::2] == [item.context_id for item in plan.items][::2]


def test_a_larger_budget_adds_tasks(tmp_path: Path) -> None:
    folder = planned_study(tmp_path / "s", 20)
    store = open_store(folder)
    before = replies_of(store)
    answer_all(store, join(store, "ann"), rate, most=5)
    text = (folder / "study.toml").read_text()
    (folder / "study.toml").write_text(text.replace("budget = 20", "budget = 30"))
    store = open_store(folder)
    assert replies_of(store)[:20] == before
    assert len(replies_of(store)) == 30
    assert answer_all(store, join(store, "bob"), rate) == 24  # ann has one of the others open
    # asked again, nothing is added twice
    store = open_store(folder)
    assert len(replies_of(store)) == 30


def test_other_changes_of_the_plan_are_refused(tmp_path: Path) -> None:
    folder = planned_study(tmp_path / "s", 20, uneven=0.2)
    store = open_store(folder)
    answer_all(store, join(store, "ann"), rate, most=2)
    text = (folder / "study.toml").read_text()
    (folder / "study.toml").write_text(text.replace("uneven = 0.2", "uneven = 0.3"))
    with pytest.raises(SettingsProblems, match=r"plan\.uneven"):
        open_store(folder)


def test_status_and_export_know_the_plan(tmp_path: Path) -> None:
    folder = planned_study(tmp_path / "s", 40)
    store = open_store(folder)
    answer_all(store, join(store, "ann"), rate, most=30)
    plan = annotate.status(folder).to_dict()["plan"]
    assert (plan["question"], plan["budget"], plan["decided"]) == ("difference", 40, True)
    (look,) = plan["looks"]
    assert (look["a"], look["b"]) == SYSTEMS
    assert look["anytime_ci"][0] > 0
    annotate.export(folder, output=tmp_path / "rated.jsonl")
    rated = rejoinder.load(tmp_path / "rated.jsonl")
    assert len(rated) == 60
    known = {item.id: item for item in rated if item.ratings is not None}
    assert len(known) == 30
    # whoever answers alone gets contexts in blocks, so that more of them are begun
    begun = {item.context_id for item in known.values()}
    chances = {item.inclusion_probability for item in known.values()}
    assert chances == {len(begun) / 30}
    assert all(item.inclusion_probability is None for item in rated if item.id not in known)


def test_replies_that_were_rated_before_are_not_asked_again(tmp_path: Path) -> None:
    records = items(10, SYSTEMS)
    for each in records[:6]:
        each["ratings"] = {"before": rating_of(each["response"])}
    folder = make_study(
        tmp_path / "s", plan_table(20), settings="answers_per_task = 1", records=records
    )
    store = open_store(folder)
    assert len(replies_of(store)) == 14
    assert not {each["id"] for each in records[:6]} & set(replies_of(store))
    answer_all(store, join(store, "ann"), rate)
    annotate.export(folder, output=tmp_path / "rated.jsonl")
    rated = rejoinder.load(tmp_path / "rated.jsonl")
    people = [name for item in rated for name in item.ratings]  # type: ignore[union-attr]
    assert (people.count("before"), people.count("ann")) == (6, 14)
    assert {item.inclusion_probability for item in rated} == {1.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"budget": 0}, r"plan\.budget: must be at least 1"),
        ({"scores": "no.jsonl"}, r"plan\.scores: there is no file 'no.jsonl'"),
        ({"systems": ["xx"]}, "xx"),
        ({"question": "difference", "systems": ["rude"]}, "here is only 'rude'"),
        ({"uneven": 2.0}, r"plan\.uneven: must be from 0 to 0.9"),
        ({"metrics": ["bleu"]}, "has no scores of single replies by bleu"),
        ({"budget": 1}, "a budget of 1 does not suffice for one context"),
    ],
)
def test_plans_that_can_not_be(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    folder = planned_study(tmp_path / "s", **{"budget": 20, **change})
    with pytest.raises(DataError, match=message):
        annotate.status(folder)


def test_scores_of_other_items(tmp_path: Path) -> None:
    folder = planned_study(tmp_path / "s", 20, uneven=0.5)
    lines = (folder / "scores.jsonl").read_text().splitlines()
    (folder / "scores.jsonl").write_text("\n".join(lines[2:]))
    with pytest.raises(DataError, match=r"2 of 60 items, the first is '0:careful', have no"):
        open_store(folder)


def test_from_a_plan_over_a_study_to_an_estimate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Plan with the command line, answers of five people over HTTP who watch the page all the
    time, export, and the estimate from all items."""
    monkeypatch.chdir(tmp_path)
    source = planned_study(tmp_path / "source", 60, contexts=60)
    (tmp_path / "items.jsonl").write_bytes((source / "items.jsonl").read_bytes())
    (tmp_path / "scores.jsonl").write_bytes((source / "scores.jsonl").read_bytes())
    assert run(["plan", "items.jsonl", "scores.jsonl", "--budget", "100", "-o", "next.jsonl"]) == 0
    chosen = rejoinder.load("next.jsonl")
    folder = planned_study(tmp_path / "study", 100, contexts=60)
    links = annotate.invite(folder, count=5, address="http://127.0.0.1").to_dict()["links"]
    decided = []
    with running_server(folder) as server:
        people = [Browser(f"{server.address}/p/{link.rpartition('/')[2]}") for link in links]
        researcher = Browser(server.researcher)
        for person in people:
            person.post("/start")
        counts = [0] * 5
        while any(person.lease for person in people):
            for number, person in enumerate(people):
                counts[number] += person.answer_all(
                    lambda page: {"appropriateness-0": str(rating_of(page))}, most=1
                )
            state = researcher.client.get(f"{server.address}/study/status.json")
            decided.append(state.json()["plan"]["decided"])
        until = time.monotonic() + 60  # the status is computed every few seconds
        while not decided[-1] and time.monotonic() < until:
            time.sleep(0.2)
            state = researcher.client.get(f"{server.address}/study/status.json")
            decided.append(state.json()["plan"]["decided"])
        page = researcher.client.get(f"{server.address}/study").text
        for browser in [*people, researcher]:
            browser.close()
    assert sum(counts) == 100 and min(counts) > 5
    assert decided[0] is False and decided[-1] is True
    assert "You may stop" in page and "careful − rude" in page
    assert run(["annotate", "export", str(folder), "-o", "rated.jsonl"]) == 0
    rated = [item for item in rejoinder.load("rated.jsonl") if item.ratings]
    assert sorted(item.id for item in rated) == sorted(item.id for item in chosen)
    assert {item.inclusion_probability for item in rated} == {50 / 60}
    for item in rated:
        assert list(item.ratings.values()) == [rating_of(item.response)]  # type: ignore[union-attr]
    assert run(["join", "items.jsonl", "--ratings", "rated.jsonl", "-o", "all.jsonl"]) == 0
    capfd.readouterr()
    assert run(["estimate", "all.jsonl", "scores.jsonl", "--json"]) == 0
    (pair,) = json.loads(capfd.readouterr().out)["pairs"]
    truth = np.mean(
        [rating_of(f"On day {n} I was careful") - rating_of(f"On day {n} I was rude")
         for n in range(60)]
    )  # fmt: skip
    assert pair["a"] == "careful" and pair["ci"][0] <= truth <= pair["ci"][1]
    assert pair["ci"][0] > 0
