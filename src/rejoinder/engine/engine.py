"""The interface of engines: SQL for relations, Arrow functions for texts.

The same SQL text and the same functions give the same rows on every engine. Both sessions are in
UTC, compare strings byte by byte, and follow ANSI (a bad cast is an error, not NULL).
``tests/engine/test_engines.py`` runs each construct below on all engines.

Safe on both:

- window functions, all frames; ``QUALIFY``; ``FILTER (WHERE …)``; ``count_if``, ``bool_or``,
  ``bool_and``, ``min_by``, ``max_by``, ``any_value``; ``GROUP BY ALL``; ``SEMI``/``ANTI JOIN``,
  ``EXISTS``; ``IS DISTINCT FROM``; ``WITH RECURSIVE``; ``UNION ALL``; ``LIMIT``/``OFFSET``
- ``md5``, ``length``, ``substring``, ``split``, ``replace``, ``lower``, ``trim``, ``||``,
  ``concat_ws``, ``LIKE``, ``regexp_extract(s, p, group)``, ``regexp_like``, ``startswith``
- ``array_append``, ``a || b``, ``slice(a, start, length)``, ``array_contains``, ``array_join``,
  ``size``, ``SELECT …, explode(a)`` (the DuckDB session defines macros for those that it lacks)
- ``CAST(t AS DATE)``, ``year(t)``, ``date_trunc``, ``unix_micros(t)``, ``datediff(late, early)``,
  ``t + INTERVAL '1' DAY``, ``CAST('2020-01-02 03:04:05Z' AS TIMESTAMP)``; ``TRY_CAST``
- ``& | << >>``, ``bit_or``, ``%``, ``floor``, ``greatest``, ``coalesce``, ``CASE``, ``if``

Different on the two engines:

- order: always write ``NULLS FIRST`` or ``LAST``; there is no row order without ``ORDER BY``
- ``array_agg``: Spark drops NULLs, so filter them first; no ``ORDER BY`` inside it, but
  ``array_agg(x) OVER (… ORDER BY … ROWS BETWEEN …)`` keeps its order; an empty frame is NULL in
  DuckDB and ``[]`` in Spark, so ``coalesce(…, {engine.array()})``
- ``min_by(x, y)`` skips rows whose x is NULL in DuckDB only, and ``array_contains`` of an array
  with NULLs is false or NULL: filter NULLs first
- arrays are written with ``engine.array('1', '2')``; ``a[i]`` counts from 1 in DuckDB, from 0
  in Spark: use ``slice``
- texts with a quote or a backslash are written with ``engine.text(…)``
- whole division: ``CAST(floor(a / b) AS BIGINT)``; a fraction that is cast to a whole number
  is rounded in DuckDB and cut off in Spark: ``floor`` or ``round`` it first; ``x / 0`` is an
  error in Spark only
- ``regexp_replace`` replaces the first match in DuckDB, all in Spark; ``upper`` differs on ß;
  ``concat(a, NULL)`` is ``a`` in DuckDB: use ``||``; ``exp`` differs in the last digit
- dates cannot be subtracted with ``-``; ``(a, b) IN (SELECT …)`` and ``IGNORE NULLS`` differ:
  use joins and ``max_by``; ``hash`` differs: use ``md5``
"""

from __future__ import annotations

import contextlib
import errno
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from rejoinder.engine.tables import conform, plain, write_rows
from rejoinder.errors import RejoinderError, ResourceError
from rejoinder.files.output import only_run, open_output
from rejoinder.progress import Progress

Function = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

MAX_JOBS = 512
"""A query with at most this many rows is a list of jobs: each row is a piece."""

PIECE_ROWS = 20_000
"""Rows of a piece otherwise: a few MB of text, a second of work."""


@dataclass(frozen=True)
class MapJob:
    """The arguments of :meth:`Engine.map`."""

    name: str
    source_query: str
    function: Function
    schema: pa.Schema
    parallel: bool
    resume_key: str | None
    piece_rows: int | None
    on_progress: Progress | None

    @property
    def part_key(self) -> str | None:
        """Key of everything but the rows that the finished parts depend on; None: not kept."""
        if not (self.parallel and self.resume_key):
            return None
        return f"{self.resume_key}\n{self.schema.to_string()}"


class Engine(ABC):
    """Named tables, made by queries and by functions; all files are in the folder ``work``.

    Names consist of letters, digits and ``_``; creating a name again replaces it. Parts of maps
    with a ``resume_key`` stay in ``work`` for a later run; the caller deletes the folder once the
    result is written.
    """

    def __init__(self, work: Path) -> None:
        self.work = work.absolute()
        self._lock = contextlib.ExitStack()
        self._lock.enter_context(only_run(self.work))

    @abstractmethod
    def table(self, name: str, data: pa.Table) -> None:
        """Create a table from a small Arrow table."""

    def map(
        self,
        name: str,
        source_query: str,
        function: Function,
        schema: pa.Schema,
        *,
        parallel: bool = True,
        resume_key: str | None = None,
        piece_rows: int | None = None,
        on_progress: Progress | None = None,
    ) -> None:
        """Create a table by applying a function to the rows of a query in several processes.

        The function is called once for each piece of rows, with the batches of the piece. Its
        result must not depend on how rows are divided into pieces and batches, and it must be
        picklable: a function of a module, or an object with ``__call__``. ``piece_rows`` is the
        number of rows in a piece; by default, each row is a piece if there are few.

        With ``parallel=False``, one call of the function in one process gets all rows in the order
        of the query, and nothing is resumed.

        ``resume_key`` identifies everything that the result depends on besides the rows: settings,
        versions. Pieces that an earlier run with the same key finished are not computed again (on
        Spark: the whole map). The query must end with a total ORDER BY, or pieces differ.
        """
        options = (parallel, resume_key, piece_rows, on_progress)
        self._map(MapJob(name, source_query, function, schema, *options))

    @abstractmethod
    def _map(self, job: MapJob) -> None:
        """Run :meth:`map`."""

    @abstractmethod
    def create(self, name: str, query: str) -> None:
        """Create a table from the rows of a query."""

    @abstractmethod
    def view(self, name: str, query: str) -> None:
        """Create a view of a query, which is computed whenever it is used."""

    @abstractmethod
    def drop(self, name: str) -> None:
        """Drop a table or view, if it exists."""

    @abstractmethod
    def array(self, *items: str) -> str:
        """Return SQL for an array of expressions; without any, the empty array of texts."""

    @abstractmethod
    def text(self, value: str) -> str:
        """Return SQL for a text, with special characters escaped."""

    @abstractmethod
    def _rows(self, query: str) -> contextlib.AbstractContextManager[pa.RecordBatchReader]:
        """Stream the rows of a query in its order."""

    @abstractmethod
    def _explained(self) -> contextlib.AbstractContextManager[None]:
        """Turn a full disk or exhausted memory into a ResourceError."""

    def fetch(self, query: str) -> pa.Table:
        """Return the rows of a query, with the same types from every engine."""
        with self._explained(), self._rows(query) as reader:
            schema = plain(reader.schema)
            return pa.Table.from_batches([conform(batch, schema) for batch in reader], schema)

    def scalar(self, query: str) -> Any:
        """Return the only value of a query; None if there is no row."""
        table = self.fetch(query)
        return table.column(0)[0].as_py() if table.num_rows else None

    def write_parquet(self, query: str, path: Path | str, schema: pa.Schema) -> int:
        """Write the rows of a query, in its order, as one Parquet file; return their number.

        The file appears whole or not at all. With a total ORDER BY, all engines write the same
        bytes.
        """
        with self._explained(), self._rows(query) as reader, open_output(path) as stream:
            return write_rows(stream, self._read(reader), schema)

    def _read(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a query; its errors are not reported as those of the output."""
        with self._explained():
            yield from reader

    def close(self) -> None:
        """Release all resources, except parts that a later run may resume from."""
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def pieces(rows: int, piece_rows: int | None) -> tuple[int, int]:
    """Return the number of rows in a piece, and the number of pieces."""
    size = piece_rows or (1 if rows <= MAX_JOBS else PIECE_ROWS)
    return size, -(-rows // size)


def machine_failure(error: BaseException, work: Path) -> RejoinderError | None:
    """Return the message for an error that says that disk or memory is exhausted, or None."""
    number = error.errno if isinstance(error, OSError) else None
    text = str(error)
    full = ("No space left on device", "max_temp_directory_size", "File too large")
    if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or any(sign in text for sign in full):
        return ResourceError(
            f"{work}: the disk is full; free some space or choose another work folder,"
            " then run the command again"
        )
    short = ("Out of Memory", "OutOfMemoryError", "malloc of size", "Cannot allocate memory")
    if isinstance(error, MemoryError) or any(sign in text for sign in short):
        return ResourceError("out of memory; close other programs or use a larger machine")
    return None
