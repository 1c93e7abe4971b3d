"""Answers in Potato are read as they were given, from every form in which it stores them."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from annotate.imports.given import (
    ANNA,
    BEN,
    CHLOE,
    FLUENCY,
    LABEL_STUDIO,
    POTATO_1,
    POTATO_2,
    RATINGS,
    WINNERS,
)
from rejoinder.annotate.imports.potato import read_potato
from rejoinder.annotate.imports.record import ImportedAnswer
from rejoinder.errors import DataError, UsageError

UNREAD = {
    "comment (text)": 2,
    "problems (several labels)": 1,
    "problems (labels without a meaning)": 2,
}


def values(answers: list[ImportedAnswer]) -> dict[tuple[str, str], Any]:
    found = {(one.person, one.item): one.values for one in answers}
    assert len(found) == len(answers)
    return found


def write(path: Path, *records: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(records[0]) if path.suffix == ".json" else "\n".join(map(json.dumps, records))
    path.write_text(text)
    return path


def line(scheme: str, stored: dict[str, Any], person: str = "ann", item: str = "i") -> Any:
    return {"instance_id": item, "user_id": person, "labels": {scheme: stored}}


@pytest.mark.parametrize(
    "path",
    [
        POTATO_1 / "output",
        POTATO_1 / "annotated_instances.csv",
        POTATO_1 / "annotated_instances.tsv",
        POTATO_1 / "annotated_instances.jsonl",
        POTATO_2 / "ratings" / "annotations.csv",
        POTATO_2 / "ratings" / "annotations.tsv",
        POTATO_2 / "ratings" / "annotations.jsonl",
    ],
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_ratings_are_read_as_given(path: Path) -> None:
    unread: Counter[str] = Counter()
    answers = list(read_potato(path, labels=FLUENCY, unread=unread))
    assert values(answers) == RATINGS
    assert all(isinstance(x, float) for one in answers for x in one.values.values())
    assert unread == UNREAD
    assert {one.time for one in answers} == {None}  # only user_state.json has it
    assert {one.items for one in answers} == {None}


def test_the_state_of_a_person_has_times() -> None:
    unread: Counter[str] = Counter()
    answers = list(read_potato(POTATO_2 / "ratings" / "output", labels=FLUENCY, unread=unread))
    ended = {  # session_end in the files; total_time_ms is 1200 in each
        (BEN, "lunch:retrieval"): 1794976447.5229914,
        (BEN, "lunch:seq2seq"): 1794976447.8963196,
        (BEN, "rain:retrieval"): 1794976448.246338,
        (CHLOE, "lunch:retrieval"): 1794976448.7193363,
        (CHLOE, "rain:seq2seq"): 1794976449.133596,
    }
    assert answers == [
        ImportedAnswer(*key, RATINGS[key], 1.2, datetime.fromtimestamp(stamp, UTC))
        for key, stamp in ended.items()
    ]
    assert unread == {"comment (text)": 1, "problems (labels without a meaning)": 1}


def test_one_person_alone_can_be_read() -> None:
    path = POTATO_2 / "ratings" / "output" / CHLOE / "user_state.json"
    answers = list(read_potato(path, labels=FLUENCY))
    assert values(answers) == {key: RATINGS[key] for key in RATINGS if key[0] == CHLOE}
    path = POTATO_1 / "output" / ANNA / "annotated_instances.jsonl"
    answers = list(read_potato(path, labels=FLUENCY))
    assert values(answers) == {key: RATINGS[key] for key in RATINGS if key[0] == ANNA}


def test_seconds_of_version_1() -> None:
    """Each person needed 1 minute and 2, 3, 4, 5 s for the items in this order."""
    order = ["lunch:retrieval", "lunch:seq2seq", "rain:retrieval", "rain:seq2seq"]
    for path in (POTATO_1 / "output", POTATO_1 / "annotated_instances.jsonl"):
        for one in read_potato(path, labels=FLUENCY):
            assert one.seconds == 62 + order.index(one.item)


@pytest.mark.parametrize(
    "name", ["output", "annotations.csv", "annotations.tsv", "annotations.jsonl"]
)
def test_pairwise_choices_are_read_as_given(name: str) -> None:
    unread: Counter[str] = Counter()
    answers = list(read_potato(POTATO_2 / "pairs" / name, unread=unread))
    assert values(answers) == {key: {"winner": side} for key, side in WINNERS.items()}
    assert not unread


def test_labels_without_a_meaning_are_counted_and_the_rest_is_read() -> None:
    unread: Counter[str] = Counter()
    answers = list(read_potato(POTATO_2 / "ratings" / "annotations.jsonl", unread=unread))
    assert values(answers) == {
        key: {name: x for name, x in given.items() if name != "fluency"}
        for key, given in RATINGS.items()
    }
    assert unread == UNREAD | {"fluency (labels without a meaning)": 9}


def test_dimensions_are_chosen() -> None:
    unread: Counter[str] = Counter()
    path = POTATO_2 / "ratings" / "annotations.csv"
    answers = list(read_potato(path, dimensions=["interest"], unread=unread))
    assert values(answers) == {
        key: {"interest": given["interest"]}
        for key, given in RATINGS.items()
        if "interest" in given
    }
    assert not unread  # what was not asked for is not missing


def test_a_label_outside_the_mapping_is_an_error() -> None:
    path = POTATO_2 / "ratings" / "annotations.jsonl"
    with pytest.raises(DataError) as error:
        list(read_potato(path, labels={"Very fluent": 3, "Fairly fluent": 2}))
    assert str(error.value) == (
        f"{path}:9: fluency: the label 'Not fluent' has no meaning; expected a number, or a label"
        " of labels= ('Very fluent', 'Fairly fluent')"
    )


def test_a_dimension_whose_labels_have_no_meaning_is_an_error_if_asked_for() -> None:
    path = POTATO_2 / "ratings" / "annotations.jsonl"
    with pytest.raises(DataError, match=r":1: fluency: the label 'Very fluent' .*none is given"):
        list(read_potato(path, dimensions=["fluency"]))


def test_a_label_can_be_left_out() -> None:
    unread: Counter[str] = Counter()
    path = POTATO_2 / "ratings" / "annotations.jsonl"
    answers = list(read_potato(path, labels=FLUENCY | {"Not fluent": None}, unread=unread))
    assert values(answers) == RATINGS | {
        (CHLOE, "rain:seq2seq"): {"appropriateness": 1, "interest": 3}
    }
    assert unread == UNREAD | {"fluency (label 'Not fluent')": 1}


@pytest.mark.parametrize(
    ("stored", "labels", "expected"),
    [
        ({"scale_10": "0"}, {}, {"s": 10}),  # version 1 stores the key, which has one digit
        ({"3": "3"}, {"3": -1}, {"s": -1}),  # what the user says comes first
        ({"Good": "2"}, {"Good": 5}, {"s": 5}),  # the label, not the key
        ({"select-one": "s:::Good"}, {"Good": 5}, {"s": 5}),
        ({"slider": "30"}, {}, {"s": 30}),
        ({"s": "0.25"}, {}, {"s": 0.25}),  # a visual analogue scale
        ({"number": 7}, {}, {"s": 7}),
        ({"First": "First"}, {"First": "a"}, {"winner": "a"}),
        ({"selection": "B"}, {}, {"winner": "b"}),
        ({"scale_value": "-2"}, {}, {"winner": "a"}),
        ({"scale_value": "0"}, {}, {"winner": "tie"}),
        ({"scale_value": "3"}, {}, {"winner": "b"}),
        ({"selection": "tie", "justification": "both fine"}, {}, {"winner": "tie"}),
    ],
)
def test_types_of_schemes(tmp_path: Path, stored: Any, labels: Any, expected: Any) -> None:
    path = write(tmp_path / "annotations.jsonl", line("s", stored))
    (answer,) = read_potato(path, labels=labels)
    assert answer == ImportedAnswer("ann", "i", expected)


def test_sliders_of_version_1_are_stored_under_one_name(tmp_path: Path) -> None:
    path = tmp_path / "annotated_instances.tsv"
    path.write_text("user\tinstance_id\tslider:::warmth\tslider:::wit\nann\ti\t30\t-2\n")
    (answer,) = read_potato(path)
    assert answer.values == {"warmth": 30, "wit": -2}


def test_a_scheme_with_several_stored_labels_has_a_column_of_its_final_answer(
    tmp_path: Path,
) -> None:
    path = tmp_path / "annotations.csv"
    path.write_text("instance_id,user_id,quality.2,quality.4,quality\ni,ann,2,4,4\nj,ann,2,,\n")
    assert [one.values for one in read_potato(path)] == [{"quality": 4}, {"quality": 2}]


@pytest.mark.parametrize(
    ("record", "unread"),
    [
        (line("notes", {"text_box": "fine"}), {"notes (text)": 1}),
        (line("notes", {"free_response": "fine"}), {"notes (text)": 1}),
        (line("tags", {"rude": "rude", "dull": "dull"}), {"tags (several labels)": 1}),
        (line("scale", {"bad_text": "bad_text"}), {"scale (marked as bad text)": 1}),
        (line("boxes", {"_data": "[]"}), {"boxes (data)": 1}),
        (line("scale", {}) | {"spans": {"ner": [{"start": 0}]}}, {"spans (marked in texts)": 1}),
        (line("pair", {"selection": "A", "why": "short"}), {"pair.why (text)": 1}),
    ],
)
def test_other_annotations_are_counted_and_named(
    tmp_path: Path, record: Any, unread: dict[str, int]
) -> None:
    found: Counter[str] = Counter()
    path = write(tmp_path / "annotations.jsonl", record, line("scale", {"4": "4"}, item="j"))
    assert list(read_potato(path, unread=found))[-1].values == {"scale": 4}
    assert found == unread


def test_answers_beside_the_labels_of_a_state_are_counted(tmp_path: Path) -> None:
    state = {
        "user_id": "ann",
        "instance_id_to_label_to_value": {"i": [[{"schema": "s", "name": "4"}, "4"]], "j": []},
        "instance_id_to_span_to_value": {"i": [[{"schema": "ner"}, "x"]], "j": []},
        "phase_to_page_to_label_to_value": {"poststudy": {"page": [["x", "y"]]}, "consent": {}},
    }
    unread: Counter[str] = Counter()
    (answer,) = read_potato(write(tmp_path / "user_state.json", state), unread=unread)
    assert answer == ImportedAnswer("ann", "i", {"s": 4})
    assert unread == {
        "spans of texts": 1,
        "poststudy (page of a survey)": 1,
        "empty answers": 1,
    }


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("user_state.json", '{"user_id": "ann", "instance_id_to_', "is not JSON"),
        ("user_state.json", "[]", "not of Potato: instance_id_to_label_to_value is missing"),
        ("user_state.json", '{"instance_id_to_label_to_value": {}}', "user_id is None"),
        (
            "user_state.json",
            '{"user_id": "ann", "instance_id_to_label_to_value": {"i": [["s", 4]]}}',
            "instance 'i': the labels have an unknown form; expected scheme, label and value",
        ),
        (
            "user_state.json",
            '{"user_id": "ann", "instance_id_to_label_to_value": {"i": {"s": {"4": "4"}}},'
            ' "instance_id_to_behavioral_data": {"i": {"session_end": 1e300}}}',
            "instance 'i': session_end is 1e.300; expected seconds since 1970",
        ),
        ("a.jsonl", '{"instance_id": "i", "user_id', ":1: the file ends in the middle of a line"),
        ("a.jsonl", "", "no rating and no choice between two replies; left out: nothing"),
        (
            "a.jsonl",
            '{"id": "i", "text": "hi"}\n',
            ":1: not of Potato: labels or label_annotations",
        ),
        ("a.jsonl", '{"user_id": "a", "labels": {}}\n', ":1: not of Potato"),
        ("a.jsonl", '{"instance_id": "i", "labels": {}}\n', ":1: user_id is None; expected an id"),
        ("a.jsonl", '{"id": "", "label_annotations": {}}\n', ":1: instance_id is ''"),
        (
            "a.jsonl",
            '{"instance_id": "i", "user_id": "a", "labels": {"s": "4"}}\n',
            ":1: the labels have an unknown form",
        ),
        (
            "a.jsonl",
            '{"instance_id": "i", "user_id": "a", "labels": {"s": {"selection": "C"}}}\n',
            ":1: s: 'C' is chosen; expected A, B or tie",
        ),
        (
            "a.jsonl",
            '{"instance_id": "i", "user_id": "a", "labels": {"s": {"number": "much"}}}\n',
            ":1: s is 'much'; expected a number",
        ),
        ("a.csv", "instance_id,user_id,s.4\ni,,4\n", ":2: user_id is ''"),
        ("a.csv", "id,reply\n1,hi\n", ":2: not of Potato: the column instance_id, user_id or user"),
        ("a.csv", 'instance_id,user_id,s.4\ni,"ann,4\n', ":2: broken row"),
        ("a.xlsx", "PK", "the name ends in '.xlsx'; expected the output folder"),
    ],
)
def test_bad_input_is_named_with_its_place(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(DataError, match=message) as error:
        list(read_potato(path))
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize("name", ["ratings.json", "ratings.min.json", "ratings.csv"])
def test_a_file_of_label_studio_is_refused(name: str) -> None:
    with pytest.raises(DataError, match=r"not of Potato: .* is missing; expected the output"):
        list(read_potato(LABEL_STUDIO / name))


def test_a_folder_without_answers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no folder in it has user_state\.json"):
        list(read_potato(tmp_path))


def test_an_unknown_dimension_is_an_error_with_the_known_ones() -> None:
    with pytest.raises(DataError, match="no answer has 'intrest'; did you mean 'interest'"):
        list(read_potato(POTATO_2 / "ratings" / "annotations.csv", dimensions=["intrest"]))


def test_two_schemes_that_name_a_winner_are_an_error(tmp_path: Path) -> None:
    record = line("overall", {"selection": "A"})
    record["labels"]["wit"] = {"selection": "B"}
    path = write(tmp_path / "annotations.jsonl", record)
    with pytest.raises(DataError, match=r":1: 'overall' and 'wit' both say which .* dimensions="):
        list(read_potato(path))
    (answer,) = read_potato(path, dimensions=["wit"])
    assert answer.values == {"winner": "b"}


def test_an_export_without_ratings_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "annotations.jsonl", line("tone", {"Rude": "Rude"}))
    with pytest.raises(
        DataError, match=r"no rating.*tone \(labels without a meaning\): 1;.*labels="
    ):
        list(read_potato(path))


def test_meanings_and_dimensions_are_checked_at_once() -> None:
    with pytest.raises(UsageError) as error:
        read_potato(POTATO_2, labels={"Good": "best", "Bad": float("nan")}, dimensions=[])
    assert error.value.messages == (
        "the label 'Good' means 'best'; expected a number, 'a', 'b', 'tie' or None",
        "the label 'Bad' means nan; expected a number, 'a', 'b', 'tie' or None",
        "the dimensions are []; expected a list of names",
    )
