"""Ratings of utterances without their context."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from annotate.studies import make_kind, no_earlier, stored
from rejoinder.annotate.tasks.kind import Accepted, Kind, Refusal
from rejoinder.errors import DataError
from rejoinder.items import item_from

STUDY = """
kind = "comprehension"
title = "Comprehension"
answers_per_task = 2
[comprehension]
question = "How well do you understand the situation?"
scale = [1, 2, 3, 4, 5]
keep_from = 5
"""
ITEMS = [
    {"id": "1", "context": ["hidden turn", "I like dogs."], "response": "", "system": "secret"},
    {"id": "2", "context": ["I like dogs. "], "response": "Me too."},
    {"id": "3", "context": ["hidden turn", "And then?"], "context_id": "c3", "response": ""},
    {"id": "4", "context": ["It rains."], "response": ""},
]


@pytest.fixture
def kind(tmp_path: Path) -> Kind:
    return make_kind(tmp_path, STUDY, ITEMS)


def test_pages_show_the_utterance_alone(kind: Kind) -> None:
    tasks = kind.tasks(kind.study.items, np.random.default_rng(1))
    assert [task.content for task in tasks] == [
        {"utterance": "I like dogs."},
        {"utterance": "And then?"},
        {"utterance": "It rains."},
    ]
    for task in tasks:
        page = kind.page(task.content, kind.view(task.content, 0, np.random.default_rng(1)))
        assert "hidden" not in json.dumps(page) and "secret" not in json.dumps(page)
        assert [step["value"] for step in page["steps"]] == [1, 2, 3, 4, 5]


def test_check(kind: Kind) -> None:
    assert kind.check({}, {}, {"rating": "4"}, no_earlier) == Accepted({"rating": 4})
    assert kind.check({}, {}, {}, no_earlier) == [Refusal("rating", "choose_one")]
    assert kind.check({}, {}, {"rating": "0"}, no_earlier) == [Refusal("rating", "not_on_scale")]


def test_export_keeps_what_all_understand(kind: Kind) -> None:
    dogs, then, rain = kind.tasks(kind.study.items, np.random.default_rng(1))
    answers = [
        stored(dogs, {"rating": 5}, "ann"),
        stored(dogs, {"rating": 5}, "bob"),
        stored(then, {"rating": 5}, "ann"),
        stored(then, {"rating": 4}, "bob"),
        stored(rain, {"rating": 5}, "ann"),  # the second answer is still missing
    ]
    export = kind.export(kind.study.items, answers)
    assert [(each["id"], each["context"]) for each in export.records] == [
        ("1", ["I like dogs."]),
        ("2", ["I like dogs."]),
    ]
    assert export.records[0]["comprehension"] == {"ann": 5.0, "bob": 5.0}
    rated = [item_from(dict(record)) for record in export.others["rated"]]
    assert [(item.response, item.rating()) for item in rated] == [
        ("I like dogs.", 5.0),
        ("And then?", 4.5),
        ("It rains.", 5.0),
    ]


def test_problems(tmp_path: Path, kind: Kind) -> None:
    with pytest.raises(DataError, match=r"keep_from: must be a value of the scale"):
        make_kind(tmp_path / "broken", STUDY.replace("keep_from = 5", "keep_from = 6"), ITEMS)
    assert kind.item_problems([item_from({"id": "9", "response": "x"})]) == [
        "1 of 1 items have no context whose last turn could be shown, such as '9'"
    ]


def test_known_tasks(tmp_path: Path, kind: Kind) -> None:
    path = tmp_path / "test.jsonl"
    path.write_text(json.dumps({"context": ["Hi"], "expected": [4, 5], "explanation": "Clear."}))
    known = kind.known_tasks(str(path))[0]
    assert known.content == {"utterance": "Hi"}
    assert kind.is_expected({"expected": known.expected}, {"rating": 4})
    assert not kind.is_expected({"expected": known.expected}, {"rating": 3})
    for wrong in ([], [6], 5, [True]):
        path.write_text(json.dumps({"context": ["Hi"], "expected": wrong}))
        with pytest.raises(DataError, match=r"test\.jsonl:1: expected 'context', and in"):
            kind.known_tasks(str(path))
