"""What the log pipeline asks of an engine: SQL for relations, Arrow functions for texts.

The same SQL text and the same functions give the same rows on every engine. Both sessions are
in UTC, compare strings byte by byte, and follow ANSI (a bad cast is an error, not NULL).
``tests/engine/test_engines.py`` runs each construct below on all engines.

Good on both:

- window functions, all frames; ``QUALIFY``; ``FILTER (WHERE …)``; ``count_if``, ``bool_or``,
  ``bool_and``, ``min_by``, ``max_by``, ``any_value``; ``GROUP BY ALL``; ``SEMI``/``ANTI JOIN``,
  ``EXISTS``; ``IS DISTINCT FROM``; ``WITH RECURSIVE``; ``UNION ALL``; ``LIMIT``/``OFFSET``
- ``md5``, ``length``, ``substring``, ``split``, ``replace``, ``lower``, ``trim``, ``||``,
  ``concat_ws``, ``LIKE``, ``regexp_extract(s, p, group)``, ``regexp_like``, ``startswith``
- ``array_append``, ``a || b``, ``slice(a, start, length)``, ``array_contains``, ``array_join``,
  ``size``, ``SELECT …, explode(a)``. (What DuckDB lacks of these, its session defines.)
- ``CAST(t AS DATE)``, ``year(t)``, ``date_trunc``, ``unix_micros(t)``, ``datediff(late, early)``,
  ``t + INTERVAL '1' DAY``, ``CAST('2020-01-02 03:04:05Z' AS TIMESTAMP)``; ``TRY_CAST``
- ``& | << >>``, ``bit_or``, ``%``, ``floor``, ``greatest``, ``coalesce``, ``CASE``, ``if``

To be written with care, because the engines differ:

- order: say ``NULLS FIRST`` or ``LAST`` always; there is no row order without ``ORDER BY``
- ``array_agg``: Spark leaves NULLs out, so filter them; no ``ORDER BY`` inside it, but
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
from pathlib import Path
from typing import IO, Any, Self

import pyarrow as pa

from rejoinder.engine.tables import conform, plain, write_rows
from rejoinder.errors import RejoinderError, ResourceError, UsageError
from rejoinder.files.output import open_output
from rejoinder.machine import locked
from rejoinder.progress import Progress

Function = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

FEW = 512
"""A query with at most so many rows is taken for a list of jobs: each row is a piece."""

PIECE = 20_000
"""Rows of a piece otherwise: a few MB of text, a second of work."""


class Engine(ABC):
    """Tables with names, made by queries and by functions; everything it keeps is in ``work``.

    A name is a plain word (letters, digits, ``_``); making it again replaces it. Parts of maps
    with a ``resume_key`` stay in ``work`` for a later run; who opened the engine deletes the
    folder once the result is safe.
    """

    def __init__(self, work: Path) -> None:
        self.work = work.absolute()
        try:
            self.work.mkdir(parents=True, exist_ok=True)
            self._lock: IO[bytes] = open(self.work / "lock", "wb")
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UsageError(f"{work}: the work folder cannot be written: {reason}") from None
        if not locked(self._lock):
            self._lock.close()
            raise ResourceError(f"{work}: another run is using this work folder; wait for it")

    @abstractmethod
    def table(self, name: str, data: pa.Table) -> None:
        """Make a small Arrow table known under a name."""

    @abstractmethod
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
        """Send the rows of a query through a function in several processes; keep the result.

        The function is called once for each piece of rows, with the piece's batches. Its result
        must not depend on how rows were cut into pieces and batches, and it must be picklable:
        a module's function, or an object of a module's class with ``__call__``. ``piece_rows``
        says how many rows make a piece; without it, few rows are a list of jobs, one each.

        With ``parallel=False`` one call of the function, in one process, sees all rows in the
        order of the query, and nothing is resumed.

        ``resume_key`` names everything that the result depends on besides the rows: settings,
        versions. Pieces that an earlier run with the same key has finished are not computed
        again (on Spark: the whole map). End the query with a total ORDER BY, or pieces differ.
        """

    @abstractmethod
    def create(self, name: str, query: str) -> None:
        """Compute a query now and keep its rows as a table."""

    @abstractmethod
    def view(self, name: str, query: str) -> None:
        """Give a query a name; it is computed whenever it is used."""

    @abstractmethod
    def drop(self, name: str) -> None:
        """Forget a table or view and free its room; nothing happens if there is none."""

    @abstractmethod
    def array(self, *items: str) -> str:
        """SQL for an array of the given expressions; without any, the empty array of texts."""

    @abstractmethod
    def text(self, value: str) -> str:
        """SQL for a text, whatever is in it."""

    @abstractmethod
    def _rows(self, query: str) -> contextlib.AbstractContextManager[pa.RecordBatchReader]:
        """The rows of a query in its order, as a stream that fits in memory."""

    @abstractmethod
    def _explained(self) -> contextlib.AbstractContextManager[None]:
        """Turns failures of the machine into ResourceErrors."""

    def fetch(self, query: str) -> pa.Table:
        """The rows of a query, with the same types from every engine."""
        with self._explained(), self._rows(query) as reader:
            schema = plain(reader.schema)
            return pa.Table.from_batches([conform(batch, schema) for batch in reader], schema)

    def scalar(self, query: str) -> Any:
        """The one value of a query; None if there is no row."""
        table = self.fetch(query)
        return table.column(0)[0].as_py() if table.num_rows else None

    def write_parquet(self, query: str, path: Path | str, schema: pa.Schema) -> int:
        """Write the rows of a query, in its order, as one Parquet file; how many they were.

        The file is whole or absent. With a total ORDER BY, all engines write the same bytes.
        """
        with self._explained(), self._rows(query) as reader, open_output(path) as stream:
            return write_rows(stream, self._read(reader), schema)

    def _read(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """The batches of a query; its failures are not blamed on the file they go to."""
        with self._explained():
            yield from reader

    def close(self) -> None:
        """Free what the engine holds, except parts that a later run may resume from."""
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def pieces(rows: int, piece_rows: int | None) -> tuple[int, int]:
    """How many rows a piece has, and how many pieces there are."""
    size = piece_rows or (1 if rows <= FEW else PIECE)
    return size, -(-rows // size)


def machine_failure(error: BaseException, work: Path) -> RejoinderError | None:
    """What to tell the user, if the error says that disk or memory have run out."""
    number = error.errno if isinstance(error, OSError) else None
    words = str(error)
    full = ("No space left on device", "max_temp_directory_size", "File too large")
    if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or any(w in words for w in full):
        return ResourceError(
            f"{work}: the disk is full; free some space or choose another work folder,"
            " then run the command again"
        )
    short = ("Out of Memory", "OutOfMemoryError", "malloc of size", "Cannot allocate memory")
    if isinstance(error, MemoryError) or any(word in words for word in short):
        return ResourceError("out of memory; close other programs or take a larger machine")
    return None
