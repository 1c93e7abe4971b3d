"""Export of ratings."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from annotate.studies import RATE, make_kind, stored
from rejoinder.annotate.tasks.kind import Kind, StoredAnswer
from rejoinder.items import Item, item_from

ITEMS = [
    {"id": "1:a", "context": ["Hi!"], "context_id": "1", "response": "Hello.", "system": "a"},
    {"id": "1:b", "context": ["Hi!"], "context_id": "1", "response": "Go.", "system": "b"},
    {"id": "2:a", "context": ["Bye."], "context_id": "2", "response": "See you.", "system": "a"},
]
TWO = RATE + '[[rate.dimensions]]\nname = "fluency"\nquestion = "Fluent?"\nscale = [0, 1]\n'


def rate_all(kind: Kind, ratings: dict[str, dict[str, dict[str, int]]]) -> list[StoredAnswer]:
    """Rate every reply: annotator -> text -> ratings."""
    tasks = kind.tasks(kind.study.items, np.random.default_rng(1))
    return [
        stored(
            task, {"ratings": [by_text[reply["text"]] for reply in task.content["replies"]]}, person
        )
        for task in tasks
        for person, by_text in ratings.items()
        if all(reply["text"] in by_text for reply in task.content["replies"])
    ]


def one(**texts: int) -> dict[str, dict[str, int]]:
    return {text: {"appropriateness": rating} for text, rating in texts.items()}


def test_responses(tmp_path: Path) -> None:
    kind = make_kind(tmp_path, RATE, [{**ITEMS[0], "ratings": [9]}, *ITEMS[1:]])
    answers = rate_all(kind, {"ann": one(**{"Hello.": 5, "Go.": 1}), "bob": one(**{"Hello.": 4})})
    export = kind.export(kind.study.items, answers)
    assert (export.what, export.others) == ("items", {})
    assert export.records[0] == {**ITEMS[0], "ratings": {"ann": 5.0, "bob": 4.0}}
    assert export.records[1] == {**ITEMS[1], "ratings": {"ann": 1.0}}
    assert export.records[2] == ITEMS[2]  # nobody has rated it yet


def test_several_dimensions(tmp_path: Path) -> None:
    kind = make_kind(tmp_path, TWO, ITEMS[:1])
    answers = rate_all(kind, {"ann": {"Hello.": {"appropriateness": 5, "fluency": 0}}})
    assert kind.dimensions() == ["appropriateness", "fluency"]
    record = kind.export(kind.study.items, answers).records[0]
    assert record["ratings"] == {"ann": 5.0}
    assert record["dimensions"] == {"appropriateness": {"ann": 5.0}, "fluency": {"ann": 0.0}}
    assert kind.export(kind.study.items, answers, "fluency").records[0]["ratings"] == {"ann": 0.0}


def test_references_get_ratings_and_weights(tmp_path: Path) -> None:
    references = [{"text": "Hey!", "weight": 0.3, "source": "retrieved"}, {"text": "Hm."}]
    items = [{**ITEMS[0], "references": references}, {**ITEMS[1], "references": references[:1]}]
    kind = make_kind(tmp_path, RATE.replace("[rate]", '[rate]\nreplies = "references"', 1), items)
    answers = rate_all(kind, {"ann": one(**{"Hey!": 5}), "bob": one(**{"Hey!": 2})})
    export = kind.export(kind.study.items, answers)
    # the mean of 5 and 2 is 3.5, the middle of 1 to 5 is 3: (3.5 - 3) / 2 = .25
    rated = {
        "text": "Hey!",
        "weight": 0.25,
        "source": "retrieved",
        "ratings": {"ann": 5.0, "bob": 2.0},
    }
    assert export.records[0]["references"] == [rated, {"text": "Hm."}]
    assert export.records[1]["references"] == [rated]  # both systems have this reference
    assert "ratings" not in export.records[0]
    assert [(each["id"], each["system"]) for each in export.others["rated"]] == [
        ("1:a:0", "retrieved")
    ]
    for record in [*export.records, *export.others["rated"]]:
        assert isinstance(item_from(dict(record)), Item)


def test_distractors_are_items_of_their_own(tmp_path: Path) -> None:
    settings = RATE.replace("[rate]", '[rate]\ndistractors = 1\nlayout = "context"', 1)
    kind = make_kind(tmp_path, settings, ITEMS)
    texts = one(**{"Hello.": 5, "Go.": 2, "See you.": 3})
    export = kind.export(kind.study.items, rate_all(kind, {"ann": texts}))
    planted = [record for record in export.records if record.get("system") == "distractor"]
    assert [each["context_id"] for each in planted] == ["1", "2"]
    assert planted[0]["response"] == "See you." and planted[0]["ratings"] == {"ann": 3.0}
    assert len({each["id"] for each in export.records}) == 5


def test_contexts_without_references_are_not_shown(tmp_path: Path) -> None:
    settings = RATE.replace("[rate]", '[rate]\nreplies = "references"\ndistractors = 1', 1)
    items = [{**ITEMS[0], "references": ["Hey!"]}, {**ITEMS[2]}]
    kind = make_kind(tmp_path, settings, items)
    tasks = kind.tasks(kind.study.items, np.random.default_rng(1))
    # the other context has no reference that could be rated, or planted here
    assert [task.content["replies"][0]["text"] for task in tasks] == ["Hey!"]


def test_export_of_no_answers(tmp_path: Path) -> None:
    kind = make_kind(tmp_path, RATE, ITEMS)
    assert kind.export(kind.study.items, []).records == ITEMS


def test_inclusion_probabilities_are_kept(tmp_path: Path) -> None:
    drawn = [{**ITEMS[0], "inclusion_probability": 0.25}, *ITEMS[1:]]
    kind = make_kind(tmp_path, RATE, drawn)
    answers = rate_all(kind, {"ann": one(**{"Hello.": 5, "Go.": 1})})
    records = kind.export(kind.study.items, answers).records
    assert [each.get("inclusion_probability") for each in records] == [0.25, None, None]
