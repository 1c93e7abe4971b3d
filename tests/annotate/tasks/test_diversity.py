"""Ratings of the diversity of sets."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rejoinder
from annotate.studies import make_kind, no_earlier, stored
from rejoinder.annotate.tasks.kind import Accepted, Kind, NewTask, Refusal
from rejoinder.errors import DataError
from rejoinder.items import item_from

LIKERT = """
kind = "diversity"
title = "Diversity"
[diversity]
fit_question = "Which replies fit?"
question = "How different are the fitting ones?"
scale = [1, 2, 3, 4, 5]
replies = 3
"""
COUNTS = LIKERT.replace("[1, 2, 3, 4, 5]", "[0, 1, 2, 3]") + "at_most_fitting = true\n"


def items(*systems: str, context: str = "7", replies: int = 3) -> list[dict]:
    return [
        {
            "id": f"{context}:{system}:{n}",
            "context": [f"Turn of {context}"],
            "context_id": context,
            "response": f"reply {n} {'abc'[n % 3]}",
            "system": system,
        }
        for system in systems
        for n in range(replies)
    ]


def first(kind: Kind) -> NewTask:
    return kind.tasks(kind.study.items, np.random.default_rng(1))[0]


def test_sets(tmp_path: Path) -> None:
    records = [*items("hred", "cvae"), *items("hred", context="8", replies=4)]
    kind = make_kind(tmp_path, LIKERT, records)
    tasks = kind.tasks(kind.study.items, np.random.default_rng(1))
    assert [
        (task.context, task.system, task.content["context_id"], task.content["system"])
        for task in tasks
    ] == [(0, 0, "7", "hred"), (0, 1, "7", "cvae"), (1, 0, "8", "hred")]
    assert [reply["item"] for reply in tasks[2].content["replies"]] == [
        f"8:hred:{n}" for n in range(3)
    ]


def test_marks_are_those_of_the_shown_positions(tmp_path: Path) -> None:
    kind = make_kind(tmp_path, LIKERT, items("hred"))
    content = first(kind).content
    view = {"order": [2, 0, 1]}
    assert kind.page(content, view)["replies"] == ["reply 2 c", "reply 0 a", "reply 1 b"]
    form = {"fits-0": "1", "fits-2": "1", "rating": "4"}
    checked = kind.check(content, view, form, no_earlier)
    assert checked == Accepted({"fits": [False, True, True], "rating": 4})


@pytest.mark.parametrize(
    ("study", "fitting", "rating", "expected"),
    [
        (LIKERT, 2, "", Refusal("rating", "choose_one")),
        (LIKERT, 2, "6", Refusal("rating", "not_on_scale")),
        (LIKERT, 2, "5", 5),
        (LIKERT, 1, "", 1),  # the lowest of the scale
        (LIKERT, 0, "5", 1),
        (COUNTS, 2, "3", Refusal("rating", "more_than_fitting", {"fitting": 2})),
        (COUNTS, 2, "2", 2),
        (COUNTS, 1, "", 1),  # one fitting reply, one different reply
        (COUNTS, 0, "", 0),
    ],
)
def test_ratings(
    tmp_path: Path, study: str, fitting: int, rating: str, expected: Refusal | int
) -> None:
    kind = make_kind(tmp_path, study, items("hred"))
    form = {f"fits-{n}": "1" for n in range(fitting)} | ({"rating": rating} if rating else {})
    checked = kind.check(first(kind).content, {"order": [0, 1, 2]}, form, no_earlier)
    if isinstance(expected, Refusal):
        assert checked == [expected]
    else:
        assert isinstance(checked, Accepted) and checked.value["rating"] == expected


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(0, 1000),
    st.dictionaries(
        st.sampled_from(["fits-0", "fits-1", "fits-2", "fits-3", "rating"]),
        st.sampled_from(["1", "0", "2", "3", "x", ""]),
    ),
)
def test_no_rating_above_the_fitting_replies(
    tmp_path: Path, seed: int, form: dict[str, str]
) -> None:
    kind = make_kind(tmp_path, COUNTS, items("secret-system"))
    content = first(kind).content
    view = kind.view(content, 0, np.random.default_rng(seed))
    page = json.dumps(kind.page(content, view))
    assert "secret" not in page and "7:" not in page
    checked = kind.check(content, view, form, no_earlier)
    if isinstance(checked, Accepted):
        assert checked.value["rating"] <= sum(checked.value["fits"])
        shown = [form.get(f"fits-{n}") == "1" for n in range(3)]
        assert [checked.value["fits"][place] for place in view["order"]] == shown
    else:
        assert [each.name for each in checked] == ["rating"]


@pytest.mark.parametrize("named", [True, False])
def test_export(tmp_path: Path, named: bool) -> None:
    records = items("hred", "cvae")
    for record in records if not named else ():
        del record["context_id"]
    kind = make_kind(tmp_path, LIKERT, records)
    hred, _ = kind.tasks(kind.study.items, np.random.default_rng(1))
    answers = [
        stored(hred, {"fits": [True, False, True], "rating": 4}, "ann"),
        stored(hred, {"fits": [True, False, False], "rating": 1}, "bob"),
    ]
    export = kind.export(kind.study.items, answers)
    context = {"context_id": "7"} if named else {"context": ["Turn of 7"]}
    assert export.what == "set ratings"
    assert export.records == [
        {**context, "system": "hred", "ratings": {"ann": 4.0, "bob": 1.0}},
    ]
    marked = [item_from(dict(record)) for record in export.others["items"]]
    assert [item.ratings for item in marked[:4]] == [
        {"ann": 1.0, "bob": 1.0},
        {"ann": 0.0, "bob": 0.0},
        {"ann": 1.0, "bob": 0.0},
        None,
    ]
    assert [(item.system, item.ratings) for item in kind.rated_items(answers)] == [
        ("hred", {"ann": 4.0, "bob": 1.0})
    ]


@pytest.mark.parametrize("named", [True, False])
def test_meta_takes_the_ratings_of_sets(tmp_path: Path, named: bool) -> None:
    """Sets whose replies have more different words are rated higher, by everybody."""
    records = [record for n in range(6) for record in items("hred", context=str(n))]
    for number, record in enumerate(records):
        # set n has n different words of 6: 2 in each of its 3 replies
        number, place = divmod(number, 3)
        record["response"] = " ".join(f"word{min(2 * place + k, number)}" for k in range(2))
        if not named:
            del record["context_id"]
    kind = make_kind(tmp_path, LIKERT, records)
    answers = [
        stored(task, {"fits": [True] * 3, "rating": min(number, 4) + 1}, person)
        for number, task in enumerate(kind.tasks(kind.study.items, np.random.default_rng(1)))
        for person in ("ann", "bob")
    ]
    path = tmp_path / "sets.jsonl"
    export = kind.export(kind.study.items, answers)
    path.write_text("".join(json.dumps(record) + "\n" for record in export.records))
    scores = rejoinder.score(tmp_path / "items.jsonl", metrics=["distinct(n=1)"])
    result = rejoinder.meta(tmp_path / "items.jsonl", scores, level="context", set_ratings=path)
    # distinct words 1, 2, 3, 4, 5, 6 and ratings 1, 2, 3, 4, 5, 5: ranks differ in 5, 6 vs 5.5,
    # 5.5, so rho = 35 / sqrt(35 * 34) with sums of squares 17.5 and 17: sqrt(17 / 17.5)
    assert result.to_dict()["results"][0]["n"] == 6
    assert result.to_dict()["results"][0]["spearman"] == pytest.approx((17 / 17.5) ** 0.5)


def test_problems(tmp_path: Path) -> None:
    broken = LIKERT.replace('"Which replies fit?"', '""').replace("replies = 3", "replies = 1")
    broken = broken.replace("[1, 2, 3, 4, 5]", "[3, 4]") + "at_most_fitting = true\n"
    with pytest.raises(DataError) as raised:
        make_kind(tmp_path / "broken", broken, items("hred"))
    assert [line.split(": ")[1] for line in str(raised.value).splitlines()] == [
        "diversity.fit_question",
        "diversity.replies",
        "diversity.at_most_fitting",
    ]
    kind = make_kind(tmp_path, LIKERT, items("hred"))
    small = [item_from(record) for record in items("hred", "cvae", replies=2)]
    assert kind.item_problems(small) == [
        "2 of 2 sets, the replies of a system to a context, have fewer than 3 replies; the set of"
        " '7:hred:0', system 'hred', has 2"
    ]
    assert kind.item_problems([]) == ["there are no items"]


def test_known_tasks(tmp_path: Path) -> None:
    kind = make_kind(tmp_path, LIKERT, items("hred"))
    path = tmp_path / "training.jsonl"
    record = {"context": ["Hi"], "replies": ["a", "b"]}
    expected = {"fits": [True, True], "ratings": [1, 2]}
    path.write_text(json.dumps({**record, "expected": expected}))
    known = kind.known_tasks(str(path))[0]
    content = {**known.content, "expected": known.expected}
    assert kind.is_expected(content, {"fits": [True, True], "rating": 2})
    assert not kind.is_expected(content, {"fits": [True, True], "rating": 3})
    assert not kind.is_expected(content, {"fits": [True, False], "rating": 1})
    for wrong in ({"fits": [True]}, {"fits": [1, 0]}, {"fits": [True, True], "ratings": [9]}, [1]):
        path.write_text(json.dumps({**record, "expected": wrong}))
        with pytest.raises(DataError, match=r"training\.jsonl:1: expected two or more 'replies'"):
            kind.known_tasks(str(path))
