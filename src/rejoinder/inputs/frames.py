"""Frames in and out: pandas, polars, Arrow tables, and datasets of Hugging Face.

Nobody who has none of these needs any: a frame brings its own library along, and narwhals speaks
to all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from rejoinder.errors import DataError, MissingExtra, UsageError
from rejoinder.inputs.items import is_dataset, made
from rejoinder.items import Item, item_from

DATASETS = "datasets"
KINDS = ("pandas", "polars", "pyarrow", DATASETS)
"""What a frame can be made as; the first that is installed, if nobody says which."""

NEEDED = ("id", "response")
FIELDS = (*NEEDED, "context", "context_id", "system", "references", "ratings")
DSTC10 = ("dialogue_id", "model", "reference", "annotations")
ROWS = 10_000
"""Of a dataset that are in memory at a time."""


def rows_of(given: Any) -> tuple[Iterator[Item], str] | None:
    """The items of a frame, row by row, and its kind; None if it is no frame."""
    if is_dataset(given):
        return _of_dataset(given), DATASETS
    import narwhals as nw
    from narwhals.exceptions import NarwhalsError

    try:
        frame = nw.from_native(given)
    except TypeError:
        return None
    except NarwhalsError as error:  # such as two columns of one name
        raise DataError(f"the frame can't be read: {error}") from None
    whole = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    names = _wanted(whole.columns)
    rows = whole.select(names).iter_rows(named=True)
    return _items(enumerate(rows)), str(whole.implementation.value)


def _of_dataset(given: Any) -> Iterator[Item]:
    """Batch by batch, so that a dataset on disk need not fit into memory twice."""
    if isinstance(given, Mapping):
        splits = ", ".join(map(str, given))
        raise DataError(f"a dataset of several splits: give one of them ({splits})")
    if not hasattr(given, "with_format") or given.column_names is None:
        return _items(enumerate(given))  # streamed: its columns are known when they come
    names = _wanted(given.column_names)
    plain = given.select_columns(names)

    def rows() -> Iterator[Mapping[str, Any]]:
        for batch in plain.with_format("arrow").iter(batch_size=ROWS):
            yield from batch.to_pylist()

    return _items(enumerate(rows()))


def _wanted(names: Iterable[Any]) -> list[str]:
    """The columns that mean something here; DataError if some that are needed are not there."""
    there = [str(name) for name in names]
    needed = ("dialogue_id", "response") if "dialogue_id" in there else NEEDED
    if missing := [name for name in needed if name not in there]:
        raise DataError(
            f"the frame has no column {' and no column '.join(missing)};"
            f" it has {', '.join(there) or 'none'} (rename those that mean the same)"
        )
    return [name for name in there if name in FIELDS or name in DSTC10]


def _items(rows: Iterable[tuple[int, Mapping[str, Any]]]) -> Iterator[Item]:
    number = -1
    for number, row in rows:
        if number == 0:
            _wanted(row)
        yield made(f"row {number}", _item, row)
    if number < 0:
        raise DataError("the frame is empty; expected a row for each reply")


def _item(row: Mapping[str, Any]) -> Item:
    given = {**row, "references": _references(row.get("references"))}
    record = {name: kept for name in given if (kept := present(given[name])) is not None}
    for key in ("id", "context_id", "dialogue_id"):
        # pandas turns whole numbers into others where one of them is missing
        if isinstance(record.get(key), float) and record[key].is_integer():
            record[key] = int(record[key])
    return item_from(record)


def present(value: Any) -> Any:
    """A value in plain Python, None if it is missing; missing parts of it are left out.

    pandas and polars keep lists as arrays, and fill up structs and mappings with nulls.
    """
    value = _plain(value)
    if isinstance(value, Mapping):
        return {key: kept for key in value if (kept := present(value[key])) is not None}
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(each, tuple) and len(each) == 2 for each in value):
            return present(dict(value))  # a map of Arrow
        return [kept for each in value if (kept := present(each)) is not None]
    if isinstance(value, (str, bool, int)):
        return value
    # NaN is not equal to itself; NA and NaT are neither equal nor not
    return value if (value == value) is True else None


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return value.tolist()
    return value.to_list() if hasattr(value, "to_list") else value  # a series


def _references(given: Any) -> Any:
    """A list, which datasets may keep as a struct of lists."""
    if not isinstance(given, Mapping):
        return given
    columns = {name: _plain(value) for name, value in given.items()}
    if not isinstance(columns.get("text"), list):
        return [given]
    rows = zip(*(columns[name] or [None] * len(columns["text"]) for name in columns), strict=False)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def make_frame(columns: Mapping[str, Sequence[Any]], kind: str | None) -> Any:
    """A frame of the kind that is asked for, or of the first that is installed."""
    kind = kind or next((name for name in KINDS if find_spec(name)), None)
    if kind is None:
        raise MissingExtra("a frame needs pandas, polars or pyarrow: pip install pandas")
    import narwhals as nw

    known = {each.value for each in nw.Implementation} | {DATASETS}
    if kind not in known:
        raise UsageError(f"to={kind!r} is not one of {', '.join(KINDS)}")
    try:
        if kind == DATASETS:
            return import_module(DATASETS).Dataset.from_dict(dict(columns))
        backend: Any = kind
        return nw.from_dict(dict(columns), backend=backend).to_native()
    except ModuleNotFoundError as error:
        raise MissingExtra(f"{error.name} is not here: pip install {error.name}") from None
