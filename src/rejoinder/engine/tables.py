"""Normalize Arrow tables of different engines, and write Parquet files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

GROUP = 100_000
"""Rows of a row group: many enough to compress well, few enough to be read with little memory."""


def plain(schema: pa.Schema) -> pa.Schema:
    """Return the schema without differences of engines: views, large types, names of list items.

    Sums of integers have 128 bits in DuckDB and 64 in Spark: they become int64. Timestamps are in
    microseconds and UTC, as both sessions are.
    """
    return pa.schema([pa.field(field.name, _plain(field.type)) for field in schema])


def _plain(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_dictionary(kind):
        return _plain(kind.value_type)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    if types.is_list(kind) or types.is_large_list(kind):
        return pa.list_(_plain(kind.value_type))
    if types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC")
    if types.is_decimal(kind) and kind.scale == 0:
        return pa.int64()
    return kind


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch with exactly the columns of the schema; TypeError if that is impossible."""
    if batch.num_columns != len(schema):
        raise TypeError(f"expected the columns {schema.names}, got {batch.schema.names}")
    columns = []
    for field in schema:
        index = batch.schema.get_field_index(field.name)
        if index < 0:
            raise TypeError(f"expected the columns {schema.names}, got {batch.schema.names}")
        column = batch.column(index)
        if column.type != field.type:
            try:
                column = column.cast(field.type)
            except pa.ArrowException as error:
                cause = str(error).partition("\n")[0]
                raise TypeError(f"column {field.name}: not {field.type} ({cause})") from None
        if column.null_count and not field.nullable:
            raise TypeError(f"column {field.name}: NULL in {column.null_count} rows, none allowed")
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def regroup(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[list[pa.RecordBatch]]:
    """Yield groups of exactly ``rows`` rows (the last may be smaller), without copying."""
    group: list[pa.RecordBatch] = []
    room = rows
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            taken = batch.slice(start, room)
            group.append(taken)
            start += taken.num_rows
            room -= taken.num_rows
            if not room:
                yield group
                group, room = [], rows
    if group:
        yield group


def write_rows(sink: Any, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    """Write a Parquet file (zstd) of the batches; return the number of rows.

    Row groups do not depend on the batches, so that equal rows make equal files.
    """
    count = 0
    shaped = (conform(batch, schema) for batch in batches)
    groups = regroup(shaped, GROUP)
    first = next(groups, [])  # nothing is written before the first rows arrive
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        for group in chain([first], groups):
            table = pa.Table.from_batches(group, schema=schema).combine_chunks()
            if table.num_rows:
                writer.write_table(table, row_group_size=GROUP)
            count += table.num_rows
    return count


def digest(batches: list[pa.RecordBatch]) -> str:
    """Return a digest of the rows, which does not depend on how they are divided into batches."""
    table = pa.Table.from_batches(batches)
    sums = hashlib.blake2b(digest_size=16)
    for name, column in zip(table.column_names, table.columns, strict=True):
        # the bytes of a NULL are undefined, so NULLs and values are hashed separately
        parts = [column.is_null(), column.drop_null()] if column.null_count else [column]
        for part in parts:
            whole = pa.table([part.combine_chunks()], names=[name])
            sums.update(pack(whole.to_batches(), whole.schema))
    return sums.hexdigest()


def pack(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> bytes:
    """Serialize rows, to send them to another process."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def unpack(packed: bytes) -> Iterator[pa.RecordBatch]:
    """Yield the batches that ``pack`` serialized."""
    with pa.ipc.open_stream(packed) as reader:
        yield from reader
