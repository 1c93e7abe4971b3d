"""Answers in Label Studio are read as they were given, from each of its exports."""

from __future__ import annotations

import copy
import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from annotate.imports.given import (
    ANNA,
    BEN,
    CHLOE,
    FLUENCY,
    LABEL_STUDIO,
    POTATO_2,
    RATINGS,
    VERDICT,
    WINNERS,
)
from rejoinder.annotate.imports.label_studio import read_label_studio
from rejoinder.annotate.imports.record import ImportedAnswer
from rejoinder.errors import DataError

NUMBERS = {ANNA: "2", BEN: "3", CHLOE: "4"}
"""Who is who in an export without e-mail addresses."""

EMAILS = {ANNA: "anna@example.org", BEN: "ben@example.org", CHLOE: CHLOE}

TIMES = {
    (ANNA, "lunch:retrieval"): "04:37:55.856094",
    (BEN, "lunch:retrieval"): "04:37:56.569822",
    (CHLOE, "lunch:retrieval"): "04:37:57.110662",
    (ANNA, "lunch:seq2seq"): "04:37:56.055770",
    (BEN, "lunch:seq2seq"): "04:37:56.775872",
    (ANNA, "rain:retrieval"): "04:37:56.281032",
    (BEN, "rain:retrieval"): "04:37:56.973304",
    (ANNA, "rain:seq2seq"): "04:37:56.455823",
    (CHLOE, "rain:seq2seq"): "04:37:57.249254",
    (ANNA, "lunch"): "04:37:57.674357",
    (BEN, "lunch"): "04:37:58.225528",
    (ANNA, "rain"): "04:37:57.875684",
    (CHLOE, "rain"): "04:37:58.472335",
    (ANNA, "film"): "04:37:58.021089",
    (BEN, "film"): "04:37:58.373401",
}

JSON_UNREAD = {
    "comment (textarea)": 2,
    "problems (several choices)": 1,
    "problems (labels without a meaning)": 2,
    "skipped tasks": 1,
    "drafts": 1,
}
MINIMAL_UNREAD = {"comment (text)": 2, "problems (several choices)": 1, "problems (text)": 2}


def time_of(key: tuple[str, str]) -> datetime:
    return datetime.fromisoformat(f"2026-11-18T{TIMES[key]}+00:00")


def rated(key: tuple[str, str], people: dict[str, str]) -> ImportedAnswer:
    """A person's n-th answer, from 0, took 10.25 + n seconds."""
    mine = [one for one in RATINGS if one[0] == key[0]]
    seconds = 10.25 + mine.index(key)
    return ImportedAnswer(people[key[0]], key[1], RATINGS[key], seconds, time_of(key))


def in_order(answers: list[ImportedAnswer]) -> list[ImportedAnswer]:
    return sorted(answers, key=lambda one: (one.person, one.item))


@pytest.mark.parametrize(
    ("name", "people", "left_out"),
    [
        ("ratings.json", NUMBERS, JSON_UNREAD),
        ("ratings.snapshot.json", EMAILS, JSON_UNREAD),
        ("ratings.min.json", NUMBERS, MINIMAL_UNREAD),
        ("ratings.csv", NUMBERS, MINIMAL_UNREAD),
        ("ratings.tsv", NUMBERS, MINIMAL_UNREAD),
    ],
)
def test_ratings_are_read_as_given(
    name: str, people: dict[str, str], left_out: dict[str, int]
) -> None:
    unread: Counter[str] = Counter()
    path = LABEL_STUDIO / name
    answers = list(read_label_studio(path, item="item", labels=FLUENCY, unread=unread))
    assert in_order(answers) == in_order([rated(key, people) for key in RATINGS])
    assert all(isinstance(x, float) for one in answers for x in one.values.values())
    assert unread == left_out


@pytest.mark.parametrize("name", ["pairs.json", "pairs.min.json", "pairs.csv", "pairs.tsv"])
def test_pairs_are_read_as_given(name: str) -> None:
    """Pairwise choices have no tie, which the choice 'verdict' has."""
    path = LABEL_STUDIO / name
    expected = [
        ImportedAnswer(
            NUMBERS[person],
            pair,
            {"winner": side},
            7.5,
            time_of((person, pair)),
            (f"{pair}:one", f"{pair}:two"),
        )
        for (person, pair), side in WINNERS.items()
    ]
    fields: Any = {"item": "item", "pair": ("id_a", "id_b")}
    by_choice = read_label_studio(path, **fields, labels=VERDICT, dimensions=["verdict"])
    assert in_order(list(by_choice)) == in_order(expected)

    unread: Counter[str] = Counter()
    by_side = read_label_studio(path, **fields, unread=unread)
    untied = [one for one in expected if one.values["winner"] != "tie"]
    assert in_order(list(by_side)) == in_order(untied)
    kind = "labels without a meaning" if name == "pairs.json" else "text"
    assert unread == {f"verdict ({kind})": 6}

    with pytest.raises(DataError, match="'preference' and 'verdict' both say which reply"):
        list(read_label_studio(path, **fields, labels=VERDICT))


def test_without_a_field_the_item_is_the_number_of_the_task() -> None:
    numbers = {"lunch:retrieval": "2", "lunch:seq2seq": "3", "rain:retrieval": "4"}
    numbers["rain:seq2seq"] = "5"
    expected = {(NUMBERS[person], numbers[item]) for person, item in RATINGS}
    for name in ("ratings.json", "ratings.min.json", "ratings.csv"):
        answers = read_label_studio(LABEL_STUDIO / name, labels=FLUENCY)
        assert {(one.person, one.item) for one in answers} == expected


def test_plain_texts_of_single_annotations_may_be_fields_of_the_task(tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    path.write_text(
        'id,annotator,annotation_id,reply,q,tone\n1,7,1,hi,"[{""rating"":4}]",rude\n'
        '2,7,2,ho,"[{""rating"":5}]",kind\n'
    )
    unread: Counter[str] = Counter()
    answers = list(read_label_studio(path, item="reply", unread=unread))
    assert [(one.person, one.item, one.values) for one in answers] == [
        ("7", "hi", {"q": 4}),
        ("7", "ho", {"q": 5}),
    ]
    assert unread == {"tone (field of the task, or a text as answer)": 2}


def test_plain_numbers_are_read_if_asked_for(tmp_path: Path) -> None:
    record = {"id": 1, "annotator": 7, "annotation_id": 1, "quality": 4, "wit": "2.5"}
    path = tmp_path / "export.json"
    path.write_text(json.dumps([record]))
    (answer,) = read_label_studio(path, dimensions=["quality", "wit"])
    assert answer.values == {"quality": 4, "wit": 2.5}


def test_several_values_of_a_name_are_left_out(tmp_path: Path) -> None:
    """Ratings of parts of a text are no rating of the item."""
    tasks = json.loads((LABEL_STUDIO / "ratings.json").read_bytes())[:1]
    tasks[0]["annotations"] = tasks[0]["annotations"][:1]
    result = tasks[0]["annotations"][0]["result"]
    result.append(copy.deepcopy(result[0]))
    result.append({"type": "relation", "from_id": "r1", "to_id": "r2"})
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    unread: Counter[str] = Counter()
    (answer,) = read_label_studio(tmp_path / "export.json", labels=FLUENCY, unread=unread)
    assert answer.values == {"fluency": 3, "interest": 60}
    assert unread == {"appropriateness (several values)": 1, "relation (relation)": 1}

    minimal = {"id": 1, "annotator": 7, "annotation_id": 1, "wit": [{"rating": 3}]}
    minimal |= {"q": [{"rating": 4}, {"rating": 5}], "ner": [{"start": 0, "labels": ["X"]}]}
    (tmp_path / "export.json").write_text(json.dumps([minimal]))
    unread.clear()
    (answer,) = read_label_studio(tmp_path / "export.json", unread=unread)
    assert answer.values == {"wit": 3}
    assert unread == {"q (several values)": 1, "ner (start, labels)": 1}


def test_a_choice_outside_the_mapping_is_an_error_with_task_and_annotation() -> None:
    labels = {"Very fluent": 3, "Fairly fluent": 2}
    with pytest.raises(
        DataError, match=r"json: task 5, annotation 9: fluency: the label 'Not fluent' has no"
    ):
        list(read_label_studio(LABEL_STUDIO / "ratings.json", labels=labels))
    with pytest.raises(DataError, match=r"json: annotation 9: fluency: the label 'Not fluent'"):
        list(read_label_studio(LABEL_STUDIO / "ratings.min.json", labels=labels))
    # each of the first seven rows has two lines, the dialogue, and one of them a third, a comment
    with pytest.raises(DataError, match=r"csv:17: fluency: the label 'Not fluent' has no"):
        list(read_label_studio(LABEL_STUDIO / "ratings.csv", labels=labels))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda task: task.pop("id"), "task in place 1: id is missing or of an unknown form"),
        (lambda task: task.pop("data"), "task 2: data is missing"),
        (lambda task: task.update(annotations={}), "task 2: annotations is missing or of an"),
        (lambda task: task.update(annotations=[1]), "task 2: an annotation is no object"),
        (lambda task: task["data"].pop("item"), "annotation 1: the task has no id in 'item'"),
        (
            lambda task: task["annotations"][0].pop("completed_by"),
            "task 2, annotation 1: the annotator is None; expected a number or an e-mail",
        ),
        (lambda task: task["annotations"][0].pop("result"), "annotation 1: result is missing"),
        (
            lambda task: task["annotations"][0].update(lead_time="long"),
            "annotation 1: lead_time is 'long'; expected a number",
        ),
        (
            lambda task: task["annotations"][0].update(created_at="yesterday"),
            "annotation 1: created_at is 'yesterday'; expected a time like",
        ),
        (
            lambda task: task["annotations"][0]["result"][0].pop("type"),
            "annotation 1: a result has no type",
        ),
        (
            lambda task: task["annotations"][0]["result"][0].pop("value"),
            "annotation 1: a result of type rating lacks from_name or value",
        ),
        (
            lambda task: task["annotations"][0]["result"][0]["value"].pop("rating"),
            "annotation 1: appropriateness is None; expected a number",
        ),
        (
            lambda task: task["annotations"][0]["result"][1].update(value={"choices": "x"}),
            "annotation 1: fluency: the choices are 'x'; expected a list of texts",
        ),
        (
            lambda task: task["annotations"][0]["result"][0].update(
                type="pairwise", value={"selected": "up"}
            ),
            "annotation 1: appropriateness: 'up' is selected; expected left or right",
        ),
    ],
)
def test_missing_and_wrong_fields_are_named_with_their_task(
    tmp_path: Path, change: Any, message: str
) -> None:
    tasks = json.loads((LABEL_STUDIO / "ratings.json").read_bytes())
    change(tasks[0])
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    with pytest.raises(DataError, match=message) as error:
        list(read_label_studio(path, item="item", labels=FLUENCY))
    assert str(error.value).startswith(f"{path}: task ")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", '[{"id": 1, "annotations": [{"id"', "is not JSON"),
        ("a.json", "{}", "not of Label Studio: no list of tasks; expected an export of"),
        ("a.json", "[1]", "not of Label Studio: no list of tasks"),
        ("a.json", "[]", "no answers; expected an export of Label Studio"),
        ("a.json", '[{"id": 1, "text": "hi"}]', "not of Label Studio: annotator, annotation_id is"),
        (
            "a.csv",
            "id,reply\n1,hi\n",
            ":2: not of Label Studio: annotator, annotation_id is missing",
        ),
        ("a.csv", "id,annotator,annotation_id\n1,,3\n", ":2: the annotator is ''"),
        ("a.csv", "id,annotator,annotation_id\n", "no answers"),
        (
            "a.csv",
            'id,annotator,annotation_id,q\n1,2,3,"[{""rating"":""x""}]"\n',
            ":2: q is 'x'; expected a number",
        ),
        ("a.jsonl", "{}", "the name ends in '.jsonl'; expected an export of Label Studio"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(DataError, match=message) as error:
        list(read_label_studio(path))
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize(
    "path", [f"ratings/output/{CHLOE}/user_state.json", "ratings/annotations.csv"]
)
def test_a_file_of_potato_is_refused(path: str) -> None:
    with pytest.raises(DataError, match=r"not of Label Studio: .*; expected an export of"):
        list(read_label_studio(POTATO_2 / path))
