"""Run the exact search on an engine: workers scan ranges of the pool, SQL merges their hits.

A range of rows is a job. Workers read vectors or postings, and the encoded queries, from the
folders of the index and of the run, so these must be on a file system that all workers share, as
must the work folder of a Spark engine. Workers need neither the model nor the texts. All
similarities are exact, so the hits are those of one machine, row for row.
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
from rejoinder.files.checked import read_array
from rejoinder.kernels.topk import Best
from rejoinder.progress import Progress
from rejoinder.retrieve.pool import RESPONSE_IDS, Pool, index_name
from rejoinder.retrieve.retriever import (
    EncodedQueries,
    Hits,
    Index,
    Mask,
    Queries,
    Retriever,
    SearchOptions,
    make_retriever,
)

_RANGES = pa.schema([("begin_row", pa.int64()), ("end_row", pa.int64())])
_HITS = pa.schema(
    [
        pa.field("query", pa.int64(), nullable=False),
        pa.field("pair", pa.int64(), nullable=False),
        pa.field("response_id", pa.int64(), nullable=False),
        pa.field("score", pa.float32(), nullable=False),
    ]
)
QUERIES, SKIPPED = "queries.npz", "skipped.npy"


@dataclass(frozen=True)
class ScanRanges:
    """An Arrow function: from ranges of rows to the best rows of each query in them."""

    retriever: str
    """The spec: the retriever itself may hold an open model."""
    index: str
    """The folder of the index."""
    size: int
    job: str
    """The folder with the queries."""
    response_ids: str | None
    """The file with the numbers of the responses, if they must be distinct."""
    k: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        index = _open_index(self.retriever, self.index, self.size)
        queries, skip = _read_job(self.job)
        groups = None
        if self.response_ids is not None:
            groups = read_array(self.response_ids, dtype="int64", shape=(self.size,), mmap=True)
        options = SearchOptions(skip, groups)
        for batch in batches:
            for row in batch.to_pylist():
                best = Best.empty(len(queries), self.k, distinct=groups is not None)
                rows = range(row["begin_row"], row["end_row"])
                index.scan(queries, rows, best, options)
                query, place = np.nonzero(best.rows >= 0)
                columns = (best.rows, best.groups, best.scores)
                arrays = [query, *(column[query, place] for column in columns)]
                yield pa.RecordBatch.from_arrays(
                    [pa.array(a, f.type) for a, f in zip(arrays, _HITS, strict=True)],
                    schema=_HITS,
                )


@lru_cache(maxsize=1)
def _open_index(retriever: str, folder: str, size: int) -> Index:
    return make_retriever(retriever).open(Path(folder), size)


@lru_cache(maxsize=1)
def _read_job(folder: str) -> tuple[EncodedQueries, Mask | None]:
    with np.load(Path(folder) / QUERIES, allow_pickle=False) as stored:
        arrays = dict(stored)
    skipped = Path(folder) / SKIPPED
    skip = np.load(skipped, allow_pickle=False) if skipped.exists() else None
    return EncodedQueries(arrays, arrays.pop("numbers")), skip


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
    """Return the hits of :meth:`Pool.search`, computed by an engine."""
    index = pool.index(retriever, on_progress)
    if index.approximate:
        raise UsageError(
            f"{retriever}: an approximate index is searched on this machine; leave out the engine,"
            " or take index=exact"
        )
    encoded = index.encode_queries(queries)
    job = Path(tempfile.mkdtemp(dir=engine.work, prefix="scan-"))
    job.chmod(0o755)  # workers may run as another user
    arrays: dict[str, Any] = {"numbers": encoded.numbers, **encoded.arrays}
    np.savez(job / QUERIES, **arrays)
    if skip is not None:
        np.save(job / SKIPPED, skip)
    home = pool.folder if retriever == pool.retriever else pool.scratch
    function = ScanRanges(
        retriever=str(retriever),
        index=str((home / index_name(retriever)).absolute()),
        size=pool.size,
        job=str(job),
        response_ids=str((pool.folder / RESPONSE_IDS).absolute()) if distinct else None,
        k=k,
    )
    ranges = [(i, min(i + index.step, pool.size)) for i in range(0, pool.size, index.step)]
    columns = [pa.array(column, pa.int64()) for column in zip(*ranges, strict=True)]
    engine.table("ranges", pa.Table.from_arrays(columns, schema=_RANGES))
    engine.map(
        "hits",
        "SELECT * FROM ranges ORDER BY begin_row",
        function,
        _HITS,
        piece_rows=1,
        on_progress=on_progress,
    )
    table = engine.fetch(_best_of_all("hits", k, distinct=distinct))
    shutil.rmtree(job, ignore_errors=True)
    rows = np.full((len(encoded), k), -1, np.int64)
    scores = np.zeros((len(encoded), k), np.float32)
    query, place = (table.column(name).to_numpy() for name in ("query", "place"))
    rows[query, place - 1] = table.column("pair").to_numpy()
    scores[query, place - 1] = table.column("score").to_numpy()
    return index.make_hits(encoded, len(queries), rows, scores)


def _best_of_all(hits: str, k: int, *, distinct: bool) -> str:
    """Return the query for the best k rows of each query among the hits of all ranges."""
    order = "ORDER BY score DESC, pair ASC"
    source = f"SELECT query, pair, score, response_id FROM {hits}"
    if distinct:
        source += f" QUALIFY row_number() OVER (PARTITION BY query, response_id {order}) = 1"
    return (
        f"SELECT query, pair, score, row_number() OVER (PARTITION BY query {order}) AS place"
        f" FROM ({source}) QUALIFY row_number() OVER (PARTITION BY query {order}) <= {k}"
    )
