"""Read and make frames: pandas, polars, Arrow tables, and datasets of Hugging Face.

None of these libraries is required: a frame comes with its own, and narwhals reads them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from rejoinder.errors import DataError, MissingExtra, UsageError
from rejoinder.files.columns import (
    ColumnError,
    ColumnMap,
    Columns,
    FirstCells,
    map_columns,
)
from rejoinder.files.item_file import OnNote, item_records, repetition_note
from rejoinder.inputs.convert import convert_item, is_dataset
from rejoinder.items import Item, ItemReader

DATASETS = "datasets"
KINDS = ("pandas", "polars", "pyarrow", DATASETS)
"""Kinds of frames that can be made; by default the first that is installed."""

BATCH_ROWS = 10_000
"""Rows of a dataset that are in memory at a time."""


def rows_of(
    frame: Any,
    columns: Columns | None = None,
    on_note: OnNote | None = None,
    *,
    with_ratings: bool = True,
) -> tuple[Iterator[Item], str] | None:
    """Return the items of a frame, row by row, and its kind; None if it is no frame."""
    if is_dataset(frame):
        return _dataset_items(frame, columns, on_note), DATASETS
    import narwhals as nw
    from narwhals.exceptions import NarwhalsError

    try:
        native = nw.from_native(frame)
        whole = native.collect() if isinstance(native, nw.LazyFrame) else native
        mapped = _columns(
            whole.columns, columns, on_note, lambda name: _present(whole.head(100)[name])
        )
        rows = whole.select(mapped.names).iter_rows(named=True)
    except TypeError:
        return None
    except NarwhalsError as error:  # such as two columns of one name
        raise DataError(f"the frame can't be read: {error}") from None
    items = _items(rows, mapped, on_note, with_ratings=with_ratings)
    return items, str(whole.implementation.value)


def _dataset_items(dataset: Any, columns: Columns | None, on_note: OnNote | None) -> Iterator[Item]:
    """Read a dataset batch by batch: one on disk need not fit into memory."""
    if isinstance(dataset, Mapping):
        splits = ", ".join(map(str, dataset))
        raise DataError(f"a dataset of several splits: give one of them ({splits})")
    if not hasattr(dataset, "with_format") or dataset.column_names is None:
        return _streamed(dataset, columns, on_note)
    mapped = _columns(
        dataset.column_names, columns, on_note, lambda name: _present(dataset[:100][name])
    )
    plain = dataset.select_columns(mapped.names)

    def rows() -> Iterator[Mapping[str, Any]]:
        for batch in plain.with_format("arrow").iter(batch_size=BATCH_ROWS):
            yield from batch.to_pylist()

    return _items(rows(), mapped, on_note)


def _streamed(dataset: Any, columns: Columns | None, on_note: OnNote | None) -> Iterator[Item]:
    """Read a dataset without column names: those of its first row are used."""
    rows = iter(dataset)
    first = next(rows, None)
    if first is None:
        raise DataError("the frame is empty; expected a row for each reply")
    mapped = _columns(first, columns, on_note, lambda name: _present([first[name]]))

    def chained() -> Iterator[Mapping[str, Any]]:
        yield first
        yield from rows

    yield from _items(chained(), mapped, on_note)


def _present(cells: Iterable[Any]) -> list[Any]:
    return [present(cell) for cell in cells]


def _columns(
    names: Any, columns: Columns | None, on_note: OnNote | None, first_cells: FirstCells
) -> ColumnMap:
    """Map the columns of a frame."""
    try:
        mapped = map_columns(map(str, names), columns, first_cells=first_cells)
    except ColumnError as error:
        raise DataError(f"the frame: {error}") from None
    if on_note is not None and (note := mapped.note()):
        on_note(f"the frame: {note}")
    return mapped


def _items(
    rows: Iterator[Mapping[str, Any]],
    columns: ColumnMap,
    on_note: OnNote | None,
    *,
    with_ratings: bool = True,
) -> Iterator[Item]:
    plain = ({name: _value(name, value) for name, value in row.items()} for row in rows)
    number, reader = -1, ItemReader(of_table=True)
    records = item_records(enumerate(plain), columns, _wrong, with_ratings=with_ratings)
    for number, record in records:
        yield convert_item(f"row {number}", reader.item, record)
    if number < 0:
        raise DataError("the frame is empty; expected a row for each reply")
    if on_note is not None and (note := repetition_note(reader.repeated)):
        on_note(f"the frame: {note}")


def _wrong(number: int, message: str) -> DataError:
    return DataError(message, path=f"row {number}")


def _value(name: str, value: Any) -> Any:
    """Return a cell in plain Python."""
    plain = present(_references(value) if isinstance(value, Mapping) and "text" in value else value)
    # pandas turns whole numbers into floats where one of them is missing
    if name.endswith("id") and isinstance(plain, float) and plain.is_integer():
        return int(plain)
    return plain


def present(value: Any) -> Any:
    """Return a value in plain Python, None if it is missing; its missing parts are left out.

    pandas and polars store lists as arrays, and fill structs and mappings with nulls.
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


def _references(struct: Mapping[str, Any]) -> Any:
    """Return a list of references, which datasets may store as a struct of lists."""
    columns = {name: _plain(value) for name, value in struct.items()}
    if not isinstance(columns.get("text"), list):
        return [struct]
    rows = zip(*(columns[name] or [None] * len(columns["text"]) for name in columns), strict=False)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def make_frame(columns: Mapping[str, Sequence[Any]], kind: str | None) -> Any:
    """Make a frame of a kind, by default of the first one that is installed."""
    kind = kind or next((name for name in KINDS if find_spec(name)), None)
    if kind is None:
        raise MissingExtra("a frame needs pandas, polars or pyarrow: pip install pandas")
    import narwhals as nw

    kinds = {each.value for each in nw.Implementation} | {DATASETS}
    if not isinstance(kind, str) or kind not in kinds:
        raise UsageError(f"to={kind!r} is not one of {', '.join(KINDS)}")
    try:
        if kind == DATASETS:
            return import_module(DATASETS).Dataset.from_dict(dict(columns))
        if kind == "polars" and (rows := list(zip(*columns.values(), strict=True))):
            # by column, polars takes the types inside lists from the first of them, and drops what
            # only later ones have
            records = [dict(zip(columns, row, strict=True)) for row in rows]
            return import_module(kind).from_dicts(records, infer_schema_length=None, strict=False)
        backend: Any = kind
        return nw.from_dict(dict(columns), backend=backend).to_native()
    except ValueError:
        if kind in KINDS:
            raise
        # a library whose frames can be read, but not made
        raise UsageError(f"to={kind!r} is not one of {', '.join(KINDS)}") from None
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"a frame of {kind} needs {error.name}: pip install {error.name}"
        ) from None
