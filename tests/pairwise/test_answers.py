"""Answers are read with every complaint at its line, and a named annotator has one vote a pair."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from duels import candidates, compared
from rejoinder.errors import DataError
from rejoinder.files.jsonl import JsonLines
from rejoinder.items import Item
from rejoinder.pairwise.answers import UNNAMED, read_answers

ITEMS = [*candidates("xyz"), Item("7", "other", context_id="d")]
GOOD = {"context_id": "c", "a": "x", "b": "y", "winner": "a", "annotator": "ann"}


def read(tmp_path: Path, *records: object, strict: bool = False):
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return read_answers(ITEMS, [JsonLines(path)], strict=strict)


def test_columns_and_votes(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        GOOD,
        {"a": "z", "b": "x", "winner": "a"},  # z before x: x stands first in the columns
        {"a": "z", "b": "y", "winner": "tie", "annotator": 3},
    )
    assert found.first.tolist() == [0, 0, 1]
    assert found.second.tolist() == [1, 2, 2]
    assert found.outcome.tolist() == [1, 0, 0.5]
    assert found.annotator.tolist() == [0, UNNAMED, 1]
    assert found.annotators == ["ann", "3"]
    contest, lonely = found.contests()
    assert contest.wins.tolist() == [[0, 1, 0], [0, 0, 0.5], [1, 0.5, 0]]
    assert lonely.wins.tolist() == [[0]]


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        ({**GOOD, "b": "x"}, "'x' is compared with itself"),
        ({**GOOD, "b": "xx"}, "b: 'xx' is not among the candidates: did you mean 'x'?"),
        ({**GOOD, "a": "nothing"}, "a: 'nothing' is not among the candidates: expected the id"),
        ({**GOOD, "b": "7"}, "'x' and '7' reply to different contexts"),
        ({**GOOD, "context_id": "d"}, "context_id: 'x' replies to 'c', not to 'd'"),
        ({**GOOD, "winner": "x"}, "winner: expected a, b or tie, got 'x'"),
        ({"a": "x", "b": "y"}, "the field is missing: winner"),
        ({**GOOD, "a": True}, "a: expected text, got true or false"),
        ([1], "the line is a JSON array"),
    ],
)
def test_a_wrong_answer_is_named_with_its_line(
    tmp_path: Path, record: object, complaint: str
) -> None:
    with pytest.raises(DataError) as error:
        read(tmp_path, GOOD, record)
    assert f"answers.jsonl:2: {complaint}" in str(error.value)


def test_an_empty_file_is_no_answer(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"answers\.jsonl: the file is empty"):
        read(tmp_path)


def test_contradicting_answers_share_one_vote() -> None:
    duels = [("x", "y", "a", "ann"), ("y", "x", "a", "ann"), ("x", "y", "a", "bob")]
    found = compared(ITEMS, duels)
    assert (found.contradicting, found.repeated) == (1, 0)
    # ann: half a vote for either; bob: one for x
    contest = next(found.contests())
    assert contest.wins[0, 1] == 1.5
    assert contest.wins[1, 0] == 0.5


def test_strict_refuses_what_contradicts_and_says_where() -> None:
    duels = [("x", "y", "a", "ann"), ("x", "z", "a", "ann"), ("x", "y", "tie", "ann")]
    with pytest.raises(
        DataError,
        match=r"answers\.jsonl:3: 'ann' gave another answer to this pair in answers\.jsonl:1",
    ):
        compared(ITEMS, duels, strict=True)


def test_the_same_answer_twice_counts_once_and_unnamed_ones_each() -> None:
    named = compared(ITEMS, [("x", "y", "a", "ann"), ("y", "x", "b", "ann")], strict=True)
    assert (named.contradicting, named.repeated) == (0, 1)
    assert next(named.contests()).wins[0, 1] == 1
    unnamed = compared(ITEMS, [("x", "y", "a"), ("x", "y", "a"), ("x", "y", "b")], strict=True)
    assert next(unnamed.contests()).wins[0, 1] == 2
    assert unnamed.contradicting == 0


def test_some_annotators_can_be_left_out() -> None:
    found = compared(ITEMS, [("x", "y", "a", "ann"), ("x", "y", "b", "bob"), ("x", "z", "a")])
    rest = found.without(["ann"])
    assert rest.outcome.tolist() == [0, 1]
    assert np.array_equal(next(found.without([]).contests()).wins, next(found.contests()).wins)


def test_candidates_without_context_id_are_told_apart_by_their_turns() -> None:
    items = [Item(name, "r", context=[turn]) for name, turn in (("1", "hi"), ("2", "hi"))]
    found = compared(items, [("1", "2", "a")])
    assert [contest.name for contest in found.contests()] == ["(context of 1)"]
    apart = [items[0], Item("2", "r", context=["bye"])]
    with pytest.raises(DataError, match="different contexts"):
        compared(apart, [("1", "2", "a")])
