"""The exact scan on an engine: ranges of the pool on many machines, the best of all by SQL.

A range of rows is a job. Workers read its vectors or word lists, and the queries as numbers, from
the folders of the index and of the run, which must therefore be on a file system that all of them
see; so must the work folder of a Spark engine anyway. A worker needs no model, and no text.
Every similarity is computed exactly, so the result is that of one machine, row for row.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rejoinder.engine import Engine
from rejoinder.errors import UsageError
from rejoinder.kernels.topk import Best
from rejoinder.progress import Progress
from rejoinder.retrieve.base import (
    Asked,
    Hits,
    Index,
    Mask,
    Queries,
    Retriever,
    hits_of,
    make_retriever,
)
from rejoinder.retrieve.pool import REPLIES, Pool, index_name

_RANGES = pa.schema([("begin_row", pa.int64()), ("end_row", pa.int64())])
_FOUND = pa.schema(
    [
        pa.field("query", pa.int64(), nullable=False),
        pa.field("pair", pa.int64(), nullable=False),
        pa.field("holds", pa.int64(), nullable=False),
        pa.field("score", pa.float32(), nullable=False),
    ]
)
ASKED, SKIPPED = "asked.npz", "skipped.npy"


@dataclass(frozen=True)
class ScanRanges:
    """An Arrow function: from ranges of rows to the best rows of each query in them."""

    retriever: str
    """Its spec: the object may have opened a model."""
    index: str
    """The folder of the index."""
    size: int
    job: str
    """The folder with the queries."""
    replies: str | None
    k: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        index = _opened(self.retriever, self.index, self.size)
        asked, skip = _read_job(self.job)
        holds = None if self.replies is None else np.load(self.replies, mmap_mode="r")
        for batch in batches:
            for row in batch.to_pylist():
                best = Best.none(len(asked), self.k, distinct=holds is not None)
                rows = range(row["begin_row"], row["end_row"])
                index.scan(asked, rows, best, skip=skip, holds=holds)
                query, place = np.nonzero(best.rows >= 0)
                columns = (best.rows, best.held, best.scores)
                arrays = [query, *(column[query, place] for column in columns)]
                yield pa.RecordBatch.from_arrays(
                    [pa.array(a, f.type) for a, f in zip(arrays, _FOUND, strict=True)],
                    schema=_FOUND,
                )


@lru_cache(maxsize=1)
def _opened(retriever: str, folder: str, size: int) -> Index:
    return make_retriever(retriever).open(Path(folder), size)


@lru_cache(maxsize=1)
def _read_job(folder: str) -> tuple[Asked, Mask | None]:
    with np.load(Path(folder) / ASKED, allow_pickle=False) as arrays:
        read = dict(arrays)
    skipped = Path(folder) / SKIPPED
    skip = np.load(skipped, allow_pickle=False) if skipped.exists() else None
    return Asked(read, read.pop("chosen")), skip


def search_on(
    engine: Engine,
    pool: Pool,
    retriever: Retriever,
    queries: Queries,
    k: int,
    *,
    skip: Mask | None = None,
    distinct: bool = False,
    on_progress: Progress | None = None,
) -> Hits:
    """What :meth:`Pool.search` finds, computed by an engine."""
    index = pool.index(retriever, on_progress)
    if index.approximate:
        raise UsageError(
            f"{retriever}: an approximate index is searched on this machine; leave out the engine,"
            " or take index=exact"
        )
    asked = index.ask(queries)
    job = Path(tempfile.mkdtemp(dir=engine.work, prefix="scan-"))
    job.chmod(0o755)  # workers may be another user
    arrays: dict[str, Any] = {"chosen": asked.chosen, **asked.arrays}
    np.savez(job / ASKED, **arrays)
    if skip is not None:
        np.save(job / SKIPPED, skip)
    home = pool.folder if retriever == pool.retriever else pool.scratch
    function = ScanRanges(
        retriever=str(retriever),
        index=str((home / index_name(retriever)).absolute()),
        size=pool.size,
        job=str(job),
        replies=str((pool.folder / REPLIES).absolute()) if distinct else None,
        k=k,
    )
    ranges = [(i, min(i + index.step, pool.size)) for i in range(0, pool.size, index.step)]
    columns = [pa.array(column, pa.int64()) for column in zip(*ranges, strict=True)]
    engine.table("ranges", pa.Table.from_arrays(columns, schema=_RANGES))
    engine.map(
        "found",
        "SELECT * FROM ranges ORDER BY begin_row",
        function,
        _FOUND,
        piece_rows=1,
        on_progress=on_progress,
    )
    best = engine.fetch(_merged("found", k, distinct=distinct))
    shutil.rmtree(job, ignore_errors=True)
    return _hits(asked, len(queries), k, best)


def _merged(found: str, k: int, *, distinct: bool) -> str:
    """The best k rows of each query among those of all ranges."""
    order = "ORDER BY score DESC, pair ASC"
    source = f"SELECT query, pair, score, holds FROM {found}"
    if distinct:
        source += f" QUALIFY row_number() OVER (PARTITION BY query, holds {order}) = 1"
    return (
        f"SELECT query, pair, score, row_number() OVER (PARTITION BY query {order}) AS place"
        f" FROM ({source}) QUALIFY row_number() OVER (PARTITION BY query {order}) <= {k}"
    )


def _hits(asked: Asked, count: int, k: int, table: pa.Table) -> Hits:
    rows = np.full((len(asked), k), -1, np.int64)
    scores = np.zeros((len(asked), k), np.float32)
    query, place = (table.column(name).to_numpy() for name in ("query", "place"))
    rows[query, place - 1] = table.column("pair").to_numpy()
    scores[query, place - 1] = table.column("score").to_numpy()
    return hits_of(asked, count, rows, scores)
