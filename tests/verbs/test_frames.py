"""Frames of any library are accepted as items, and results are frames of the same library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pytest

import rejoinder
from frames import ITEMS, KINDS, MAKERS, ROWS
from rejoinder.errors import UsageError
from rejoinder.items import Item, Reference


@pytest.mark.parametrize("kind", MAKERS)
def test_a_frame_is_read_as_items(kind: str) -> None:
    assert rejoinder.load(MAKERS[kind](ROWS)) == ITEMS


@pytest.mark.parametrize("kind", KINDS)
def test_result_frames_are_of_the_library_of_the_input(kind: str) -> None:
    frame = KINDS[kind](ROWS)
    found = rejoinder.score(frame, ["rouge-l", "bleu(n=1)"]).frame()
    assert type(found) is type(frame)
    assert rows_of(found) == [
        {"id": "1", "system": "a", "rouge-l": 1.0, "bleu(n=1)": 1.0},
        {"id": "2", "system": None, "rouge-l": None, "bleu(n=1)": None},
        # one of two words: P = R = 1/2
        {"id": "3", "system": "b", "rouge-l": 0.5, "bleu(n=1)": 0.5},
    ]
    for name in KINDS:
        assert type(rejoinder.load(frame).frame(to=name)) is type(KINDS[name](ROWS))


@pytest.mark.parametrize("kind", KINDS)
def test_items_are_the_same_after_a_round_trip(kind: str) -> None:
    assert rejoinder.load(rejoinder.load(ITEMS).frame(to=kind)) == ITEMS
    drawn = [Item("1", "x", inclusion_probability=0.25), Item("2", "y")]
    assert rejoinder.load(rejoinder.load(drawn).frame(to=kind)) == drawn


@pytest.mark.parametrize("kind", KINDS)
def test_ratings_of_references_are_the_same_after_a_round_trip(kind: str) -> None:
    named = [
        Item("1", "x", references=[Reference("a"), Reference("b", 0.5, ratings={"ann": 4.0})]),
        Item("2", "y"),
        Item("3", "z", references=[Reference("c", ratings={"ann": 1.0, "bob": 2.0})]),
    ]
    assert rejoinder.load(rejoinder.load(named).frame(to=kind)) == named
    listed = [
        Item("1", "x", references=[Reference("a"), Reference("b", ratings=[1.0, 2.0])]),
        Item("2", "y", references=[Reference("b", ratings=[2.0])]),
    ]
    assert rejoinder.load(rejoinder.load(listed).frame(to=kind)) == listed
    later = [Item("1", "x", references=[Reference("a")]), *listed[1:]]
    later += [Item("4", "y", references=[Reference("b", 0.5, "s", 0.25)])]
    assert rejoinder.load(rejoinder.load(later).frame(to=kind)) == later
    averaged = [Item("1", "x", references=[Reference("a"), Reference("b", ratings=0.0)])]
    assert rejoinder.load(rejoinder.load(averaged).frame(to=kind)) == averaged


@pytest.mark.parametrize("kind", KINDS)
def test_every_verb_accepts_and_returns_frames(kind: str) -> None:
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
    frame = KINDS[kind](rows)
    ranked = rows_of(rejoinder.compare(frame, "rouge-l", resamples=100).frame())
    plain = rejoinder.compare(rows, "rouge-l", resamples=100)[0]
    assert [(r["system"], r["value"], r["group"]) for r in ranked] == [
        (each.system, each.value, each.group) for each in plain.systems
    ]
    (row,) = rows_of(rejoinder.meta(frame, "rouge-l", resamples=100).frame())
    found = rejoinder.meta(rows, "rouge-l", resamples=100).results[0].correlations
    assert (row["n"], row["spearman"], row["pearson_p"]) == (
        10,
        found.spearman.value,
        found.pearson.p,
    )
    judged = rows_of(rejoinder.diversity(frame, "distinct(n=1)").frame())
    assert [row["system"] for row in judged] == ["x", "y"]


def rows_of(frame: Any) -> list[dict[str, Any]]:
    if isinstance(frame, pd.DataFrame):
        rows = frame.to_dict("records")
        return [{k: None if v is None or v != v else v for k, v in row.items()} for row in rows]
    if isinstance(frame, pl.DataFrame):
        return frame.to_dicts()
    return frame.to_list() if isinstance(frame, datasets.Dataset) else frame.to_pylist()


def test_ratings_of_mixed_types_do_not_fit_into_a_frame() -> None:
    mixed = [Item("1", "x", ratings=1.0), Item("2", "x", ratings=[1.0])]
    with pytest.raises(UsageError, match="do not fit into one column"):
        rejoinder.load(mixed).frame()
    of_references = [Reference("a", ratings=1.0), Reference("b", ratings={"ann": 1.0})]
    with pytest.raises(UsageError, match="do not fit into one column"):
        rejoinder.load([Item("1", "x", references=of_references)]).frame()


def test_an_empty_reply_of_a_csv_file_is_blank_in_a_frame_and_in_parquet_too(
    tmp_path: Path,
) -> None:
    """pandas reads an empty cell as NaN, polars and Parquet have null."""
    path, parquet = tmp_path / "items.csv", tmp_path / "items.parquet"
    path.write_text("id,context,response,system,references\n1,hi,,x,hello\n2,hi,hello,y,hello\n")
    pl.read_csv(path).write_parquet(parquet)
    results = [
        rejoinder.score(given, ["rouge-l"])
        for given in (path, pd.read_csv(path), pl.read_csv(path), parquet)
    ]
    for result in results:
        assert result["rouge-l"].values.tolist() == [0.0, 1.0]
        assert result.blank_replies == {"x": 1}
