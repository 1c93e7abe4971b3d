"""Frames of any kind are read as items, with the same columns as tables in files."""

from __future__ import annotations

import math
from typing import Any

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from frames import ITEMS, KINDS, MAKERS, ROWS
from rejoinder.errors import DataError, UsageError
from rejoinder.inputs.frames import make_frame, present
from rejoinder.inputs.items import as_items
from rejoinder.items import Item, Reference


def load(frame: Any, **arguments: Any) -> list[Item]:
    return list(as_items(frame, **arguments)[0])


@pytest.mark.parametrize("kind", MAKERS)
def test_a_frame_is_a_list_of_items(kind: str) -> None:
    assert load(MAKERS[kind](ROWS)) == ITEMS


def test_other_forms_of_the_columns() -> None:
    """A context as one text, whole numbers as ids, struct of lists, maps, plain references."""
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("response", pa.string()),
            ("context", pa.string()),
            (
                "references",
                pa.struct({"text": pa.list_(pa.string()), "weight": pa.list_(pa.float64())}),
            ),
            ("ratings", pa.map_(pa.string(), pa.float64())),
        ]
    )
    row = {
        "id": 7,
        "response": "x",
        "context": "a\nb",
        "references": {"text": ["p", "q"], "weight": [None, 0.5]},
        "ratings": [("ann", 3.0)],
    }
    references = [Reference("p"), Reference("q", 0.5)]
    expected = Item("7", "x", ["a", "b"], references=references, ratings={"ann": 3.0})
    table = pa.Table.from_pylist([row], schema)
    assert load(table) == [expected]
    of_datasets = load(datasets.Dataset(table.drop_columns("ratings")))  # it has no maps
    assert of_datasets[0].references == references
    plain = pd.DataFrame({"id": ["1"], "response": ["x"], "references": [["p", "q"]]})
    assert load(plain)[0].references == [Reference("p"), Reference("q")]
    one = pl.DataFrame([{"id": "1", "response": "x", "references": {"text": "p", "weight": 0.5}}])
    assert load(one)[0].references == [Reference("p", 0.5)]


def test_names_of_dstc10() -> None:
    frame = pd.DataFrame(
        {
            "dialogue_id": [1],
            "model": ["m"],
            "response": ["x"],
            "reference": ["y"],
            "annotations": [{"overall": [3, 5], "grammar": [1]}],
        }
    )
    expected = Item("1:m", "x", [], "m", [Reference("y")], [3, 5], context_id="1")
    for kind in (frame, pl.from_pandas(frame), frame.assign(annotations='{"overall": [3, 5]}')):
        assert load(kind) == [expected]


@pytest.mark.parametrize("missing", [None, math.nan, np.nan, pd.NA, pd.NaT, np.float32("nan")])
def test_missing_is_absent(missing: Any) -> None:
    assert present(missing) is None
    frame = pd.DataFrame(
        {"id": ["1"], "response": ["x"], "system": [missing], "ratings": [missing]}
    )
    assert load(frame) == [Item("1", "x")]


GOOD = {"id": "1", "response": "x"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([{"text": "a", "id": "1"}], "no column holds the response; the columns are 'text', 'id'"),
        ([{"reply": "a", "answer": "b"}], "'reply' and 'answer' could all be the response"),
        ([{**GOOD, "context": [1, 2]}], r"row 0: context\[0\]: expected text, got a whole number"),
        ([{**GOOD, "references": 7}], "row 0: references.*: expected"),
        ([GOOD, {**GOOD, "id": None}], "row 1: the id is missing"),
        ([GOOD, GOOD], "the id '1' occurs twice"),
        ([{**GOOD, "ratings": math.inf}], "row 0: ratings: expected numbers from"),
    ],
)
def test_errors_in_a_frame_name_the_row(
    kind: str, rows: list[dict[str, Any]], complaint: str
) -> None:
    with pytest.raises(DataError, match=complaint):
        load(KINDS[kind](rows))


def test_an_empty_frame_and_other_oddities() -> None:
    empty = pd.DataFrame({"id": [], "response": []})
    for frame in (empty, pl.from_pandas(empty), pa.Table.from_pandas(empty)):
        with pytest.raises(DataError, match="the frame is empty"):
            load(frame)
    with pytest.raises(DataError, match="the columns are none"):
        load(pd.DataFrame())
    with pytest.raises(DataError, match=r"row 1: the id is missing"):
        load(pd.DataFrame({"id": [1, np.nan], "response": ["x", "y"]}))
    twice = pd.DataFrame([["1", "x", "y"]], columns=["id", "response", "response"])
    with pytest.raises(DataError, match="can't be read"):
        load(twice)
    splits = datasets.DatasetDict({"test": datasets.Dataset.from_list(ROWS)})
    with pytest.raises(DataError, match=r"several splits: give one of them \(test\)"):
        load(splits)
    with pytest.raises(UsageError, match="to='excel' is not one of pandas, polars"):
        make_frame({"a": [1]}, "excel")


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_named_or_guessed_and_the_guess_is_reported(kind: str) -> None:
    frame = KINDS[kind]([{"Bot": "a", "Reply": "hi", "gold": "hey", "extra": "x", "rating": 3.5}])
    notes: list[str] = []
    (item,) = load(frame, on_note=notes.append)
    assert item == Item(item.id, "hi", system="a", references=[Reference("hey")], ratings=3.5)
    assert notes == [
        "the frame: columns recognised by name: response = Reply, system = Bot,"
        " references = gold, ratings = rating; no column was recognised as context;"
        " not read: extra; add columns={'context': 'extra'} (columns={'FIELD': 'NAME'} changes it)"
    ]
    (item,) = load(frame, columns={"reply": "extra", "references": ["Reply", "gold"]})
    assert (item.response, item.references) == ("x", [Reference("hi"), Reference("hey")])


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_for_each_rating(kind: str) -> None:
    rows = [
        {"question": "hi", "bot": "a", "reply": "hello", "rater": "ann", "rating": 4},
        {"question": "hi", "bot": "b", "reply": "no", "rater": "ann", "rating": 1},
        {"question": "hi", "bot": "a", "reply": "hello", "rater": "bob", "rating": 5},
    ]
    first, second = load(KINDS[kind](rows))
    assert first == Item(first.id, "hello", ["hi"], "a", ratings={"ann": 4.0, "bob": 5.0})
    assert second == Item(second.id, "no", ["hi"], "b", ratings={"ann": 1.0})


def test_ratings_that_a_verb_does_not_need_are_not_read() -> None:
    """A reply that one annotator rated twice, in a test set of which only the texts are needed."""
    rows = [{"reply": "a", "context": "hi", "annotator": "ann", "rating": n} for n in (1, 2)]
    frame = pd.DataFrame(rows)
    with pytest.raises(DataError, match="has rated this item in a row before"):
        list(as_items(frame)[0])
    (item,) = as_items(frame, with_ratings=False)[0]
    assert (item.response, item.ratings) == ("a", None)
