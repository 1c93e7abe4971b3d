"""Frames of every supported library with the same three items, for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import datasets
import pandas as pd
import polars as pl
import pyarrow as pa

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
