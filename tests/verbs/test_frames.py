"""Frames of any kind go in wherever items go in, and come out as they came."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import datasets
import rejoinder
from rejoinder.errors import DataError, UsageError
from rejoinder.inputs.frames import make_frame, present
from rejoinder.items import Item, Reference

Make = Callable[[list[dict[str, Any]]], Any]
KINDS: dict[str, Make] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.Table.from_pylist,
    "datasets": datasets.Dataset.from_list,
}
MAKERS: dict[str, Make] = {
    **KINDS,
    "pandas of arrays": lambda rows: pa.Table.from_pylist(rows).to_pandas(),
    "pandas of Arrow": lambda rows: pa.Table.from_pylist(rows).to_pandas(
        types_mapper=pd.ArrowDtype
    ),
    "lazy": pl.LazyFrame,
    "streamed": lambda rows: datasets.Dataset.from_list(rows).to_iterable_dataset(),
    "picked": lambda rows: datasets.Dataset.from_list(rows[:1] * 2 + rows).select(
        range(2, 2 + len(rows))
    ),
}

ROWS: list[dict[str, Any]] = [
    {
        "id": "1",
        "context": ["hi", "how are you"],
        "response": "fine thanks",
        "system": "a",
        "references": [{"text": "fine thanks", "weight": None}, {"text": "no", "weight": -0.5}],
        "ratings": {"ann": 4.0, "bob": None},
        "colour": "red",
    },
    {
        "id": "2",
        "context": None,
        "response": "",
        "system": None,
        "references": None,
        "ratings": {"ann": 1.0, "bob": 2.0},
        "colour": None,
    },
    {
        "id": "3",
        "context": ["hi"],
        "response": "fine then",
        "system": "b",
        "references": [{"text": "fine thanks", "weight": 0.5}],
        "ratings": None,
        "colour": "blue",
    },
]
ITEMS = [
    Item(
        "1",
        "fine thanks",
        ["hi", "how are you"],
        "a",
        [Reference("fine thanks"), Reference("no", -0.5)],
        {"ann": 4.0},
    ),
    Item("2", "", ratings={"ann": 1.0, "bob": 2.0}),
    Item("3", "fine then", ["hi"], "b", [Reference("fine thanks", 0.5)]),
]


@pytest.mark.parametrize("kind", MAKERS)
def test_a_frame_is_a_list_of_items(kind: str) -> None:
    assert rejoinder.load(MAKERS[kind](ROWS)) == ITEMS


@pytest.mark.parametrize("kind", KINDS)
def test_what_comes_out_is_of_the_kind_that_went_in(kind: str) -> None:
    given = KINDS[kind](ROWS)
    found = rejoinder.score(given, ["rouge-l", "bleu(n=1)"]).frame()
    assert type(found) is type(given)
    assert rows_of(found) == [
        {"id": "1", "system": "a", "rouge-l": 1.0, "bleu(n=1)": 1.0},
        {"id": "2", "system": None, "rouge-l": None, "bleu(n=1)": None},
        # one of two words: P = R = 1/2
        {"id": "3", "system": "b", "rouge-l": 0.5, "bleu(n=1)": 0.5},
    ]
    for name in KINDS:
        assert type(rejoinder.load(given).frame(to=name)) is type(KINDS[name](ROWS))


@pytest.mark.parametrize("kind", KINDS)
def test_items_survive_the_way_out_and_in(kind: str) -> None:
    assert rejoinder.load(rejoinder.load(ITEMS).frame(to=kind)) == ITEMS


@pytest.mark.parametrize("kind", KINDS)
def test_every_verb_takes_and_gives_frames(kind: str) -> None:
    rng = np.random.default_rng(1)
    rows = [
        {
            "id": f"{c}{s}",
            "context_id": str(c),
            "system": s,
            "response": " ".join(rng.choice(list("abc"), 4)),
            "references": ["a b c a"],
            "ratings": [float(rng.integers(1, 6)), float(rng.integers(1, 6))],
        }
        for c in range(5)
        for s in "xy"
    ]
    given = KINDS[kind](rows)
    ranked = rows_of(rejoinder.compare(given, "rouge-l", resamples=100).frame())
    plain = rejoinder.compare(rows, "rouge-l", resamples=100)[0]
    assert [(r["system"], r["value"], r["group"]) for r in ranked] == [
        (each.system, each.value, each.group) for each in plain.systems
    ]
    (row,) = rows_of(rejoinder.meta(given, "rouge-l", resamples=100).frame())
    found = rejoinder.meta(rows, "rouge-l", resamples=100).results[0].correlations
    assert (row["n"], row["spearman"], row["pearson_p"]) == (
        10,
        found.spearman.value,
        found.pearson.p,
    )
    judged = rows_of(rejoinder.diversity(given, "distinct(n=1)").frame())
    assert [row["system"] for row in judged] == ["x", "y"]


def rows_of(frame: Any) -> list[dict[str, Any]]:
    if isinstance(frame, pd.DataFrame):
        rows = frame.to_dict("records")
        return [{k: None if v is None or v != v else v for k, v in row.items()} for row in rows]
    if isinstance(frame, pl.DataFrame):
        return frame.to_dicts()
    return frame.to_list() if isinstance(frame, datasets.Dataset) else frame.to_pylist()


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
    assert rejoinder.load(table) == [expected]
    of_datasets = rejoinder.load(datasets.Dataset(table.drop_columns("ratings")))  # it has no maps
    assert of_datasets[0].references == references
    plain = pd.DataFrame({"id": ["1"], "response": ["x"], "references": [["p", "q"]]})
    assert rejoinder.load(plain)[0].references == [Reference("p"), Reference("q")]
    one = pl.DataFrame([{"id": "1", "response": "x", "references": {"text": "p", "weight": 0.5}}])
    assert rejoinder.load(one)[0].references == [Reference("p", 0.5)]


def test_names_of_dstc10() -> None:
    frame = pd.DataFrame(
        {"dialogue_id": [1], "model": ["m"], "response": ["x"], "reference": ["y"]}
    )
    assert rejoinder.load(frame) == [
        Item("1:m", "x", system="m", references=[Reference("y")], context_id="1")
    ]


@pytest.mark.parametrize("missing", [None, math.nan, np.nan, pd.NA, pd.NaT, np.float32("nan")])
def test_missing_is_absent(missing: Any) -> None:
    assert present(missing) is None
    frame = pd.DataFrame(
        {"id": ["1"], "response": ["x"], "system": [missing], "ratings": [missing]}
    )
    assert rejoinder.load(frame) == [Item("1", "x")]


GOOD = {"id": "1", "response": "x"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([{"text": "a", "id": "1"}], "no column response; it has text, id"),
        ([{"text": "a"}], "no column id and no column response; it has text"),
        ([{**GOOD, "context": [1, 2]}], r"row 0: context\[0\]: expected text, got a whole number"),
        ([{**GOOD, "references": "y"}], "row 0: references: expected a list, got one string"),
        ([GOOD, {**GOOD, "id": None}], "row 1: the field is missing: .?id"),
        ([GOOD, {"id": "2", "response": None}], "row 1: the field is missing: .?response"),
        ([GOOD, GOOD], "the id '1' stands twice"),
        ([{**GOOD, "ratings": math.inf}], "row 0: ratings: expected numbers from"),
    ],
)
def test_what_is_wrong_with_a_frame_is_named(
    kind: str, rows: list[dict[str, Any]], complaint: str
) -> None:
    with pytest.raises(DataError, match=complaint):
        rejoinder.score(KINDS[kind](rows), "rouge-l")


def test_an_empty_frame_and_other_oddities() -> None:
    empty = pd.DataFrame({"id": [], "response": []})
    for frame in (empty, pl.from_pandas(empty), pa.Table.from_pandas(empty)):
        with pytest.raises(DataError, match="the frame is empty"):
            rejoinder.score(frame, "rouge-l")
    with pytest.raises(DataError, match="it has none"):
        rejoinder.score(pd.DataFrame(), "rouge-l")
    with pytest.raises(DataError, match=r"row 1: the field is missing: .?id"):
        rejoinder.score(pd.DataFrame({"id": [1, np.nan], "response": ["x", "y"]}), "rouge-l")
    twice = pd.DataFrame([["1", "x", "y"]], columns=["id", "response", "response"])
    with pytest.raises(DataError, match="can't be read"):
        rejoinder.score(twice, "rouge-l")
    splits = datasets.DatasetDict({"test": datasets.Dataset.from_list(ROWS)})
    with pytest.raises(DataError, match=r"several splits: give one of them \(test\)"):
        rejoinder.score(splits, "rouge-l")
    with pytest.raises(UsageError, match="to='excel' is not one of pandas, polars"):
        make_frame({"a": [1]}, "excel")
    mixed = [Item("1", "x", ratings=1.0), Item("2", "x", ratings=[1.0])]
    with pytest.raises(UsageError, match="do not fit into one column"):
        rejoinder.load(mixed).frame()
