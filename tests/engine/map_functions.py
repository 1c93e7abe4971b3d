"""Functions that the engine tests send through ``map``; worker processes import them from here."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.errors import DataError

Batches = Iterator[pa.RecordBatch]

NUMBERS = pa.schema([pa.field("i", pa.int64(), nullable=False), pa.field("s", pa.string())])


def same(batches: Batches) -> Batches:
    yield from batches


def even(batches: Batches) -> Batches:
    for batch in batches:
        yield batch.filter(pc.equal(pc.bit_wise_and(batch["i"], 1), 0))


def thrice(batches: Batches) -> Batches:
    """Three rows for one, in batches of one row, with another spelling of the type."""
    for batch in batches:
        for row in batch.to_pylist():
            for copy in "abc":
                texts = pa.array([f"{row['s']}{copy}"], pa.large_string())
                yield pa.record_batch([texts, pa.array([row["i"]])], names=["s", "i"])


def running_sum(batches: Batches) -> Batches:
    """Needs all rows, in order, in one call."""
    total = 0
    for batch in batches:
        for i in batch["i"].to_pylist():
            total += i
            yield pa.record_batch([[i], [str(total)]], schema=NUMBERS)


def null_number(batches: Batches) -> Batches:
    """NULL where the schema has none."""
    for batch in batches:
        nulls = pa.nulls(batch.num_rows, pa.int64())
        yield pa.record_batch([nulls, batch["s"]], names=["i", "s"])


def bad_line(batches: Batches) -> Batches:
    for batch in batches:
        if 3 in batch["i"].to_pylist():
            raise DataError("not a record", path="log.jsonl", line=3)
        yield batch


class Odd(Exception):
    """An exception that cannot be unpickled: its arguments are not those of its class."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def odd_failure(batches: Batches) -> Batches:
    for _ in batches:
        raise Odd(1, 2)
    yield from ()


def zero(batches: Batches) -> Batches:
    for _ in batches:
        yield 1 // 0


def suicide(batches: Batches) -> Batches:
    for batch in batches:
        if 3 in batch["i"].to_pylist():
            os.kill(os.getpid(), signal.SIGKILL)
        yield batch


@dataclass(frozen=True)
class Noted:
    """Leaves a file for each row that it has begun; may be slow, or fail at a row."""

    folder: Path
    seconds: float = 0.0
    fails_at: int | None = None

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            for i in batch["i"].to_pylist():
                if i == self.fails_at:
                    raise DataError("stop here")
                (self.folder / f"{i}-{os.getpid()}-{time.monotonic_ns()}").touch()
                time.sleep(self.seconds)
            yield batch
