"""Open Parquet files of pairs and check their columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rejoinder.errors import DataError, missing_extra
from rejoinder.files.paths import open_regular, read_error

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

TEXTS = ("utterance", "response", "split", "utterance_id", "response_id")
CONTEXT = "context"
BATCH_ROWS = 16_384


@contextmanager
def open_pairs(path: str | Path, columns: Sequence[str]) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file that has these columns, with texts in the columns of texts.

    Damage in a Parquet file is often found only when a part is read, and is then reported as the
    file's: do nothing but reading inside the block.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise missing_extra("logs", "pyarrow", task="a file of pairs") from None
    name = str(path)
    try:
        with open_regular(path) as stream, pq.ParquetFile(stream) as file:
            _check_columns(file.schema_arrow, columns, name)
            yield file
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        damage = (
            "not a Parquet file, or a damaged one ({});"
            " expected pairs, as 'rejoinder corpus' writes them"
        )
        raise read_error(path, error, damage) from None


def read_pairs_batches(
    path: str | Path, columns: Sequence[str], batch_rows: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """Yield batches of columns of texts (``context``: lists of texts), none of them NULL."""
    with open_pairs(path, columns) as file:
        import pyarrow as pa

        kinds = {
            name: pa.list_(pa.string()) if name == CONTEXT else pa.string() for name in columns
        }
        row = 0
        for batch in file.iter_batches(batch_rows, columns=list(columns)):
            arrays = [batch.column(name).cast(kind) for name, kind in kinds.items()]
            for name, array in zip(columns, arrays, strict=True):
                array.validate(full=True)
                if has_nulls(array):
                    raise DataError(
                        f"column {name}: a text is missing (NULL) between rows {row} and"
                        f" {row + batch.num_rows}",
                        path=str(path),
                    )
            row += batch.num_rows
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def has_nulls(array: pa.Array) -> bool:
    """Return whether an array, or one of the lists in it, holds a NULL."""
    import pyarrow as pa

    nested = array.flatten() if pa.types.is_list(array.type) else None
    return bool(array.null_count or (nested is not None and nested.null_count))


def _check_columns(schema: pa.Schema, columns: Sequence[str], path: str) -> None:
    if missing := [column for column in columns if column not in schema.names]:
        raise DataError(f"has no column {', '.join(missing)}; expected pairs", path=path)
    for field in schema:
        if field.name in (*TEXTS, CONTEXT, *columns):
            if schema.names.count(field.name) > 1:
                raise DataError(f"has several columns of the name {field.name}", path=path)
            if field.name in TEXTS and not _is_text(field.type):
                raise DataError(
                    f"column {field.name}: expected texts, found {field.type}", path=path
                )
            if field.name == CONTEXT and not _is_list_of_texts(field.type):
                raise DataError(
                    f"column {field.name}: expected lists of texts, found {field.type}", path=path
                )


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_list_of_texts(kind: pa.DataType) -> bool:
    import pyarrow.types as types

    if not (types.is_list(kind) or types.is_large_list(kind)):
        return False
    return _is_text(kind.value_type) or bool(types.is_null(kind.value_type))  # all are empty
