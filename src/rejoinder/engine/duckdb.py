"""The DuckDB engine for one machine: tables on disk, functions in worker processes."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from rejoinder.engine.engine import Engine, MapJob, machine_failure, pieces
from rejoinder.engine.tables import conform, digest, pack, plain, regroup, unpack
from rejoinder.engine.workers import Workers, save_job, write_part
from rejoinder.errors import ResourceError, UsageError, missing_extra
from rejoinder.machine import cores
from rejoinder.progress import Progress

try:
    import duckdb
except ImportError:
    raise missing_extra("logs", "duckdb", task="the engine duckdb") from None

MACROS = (
    "slice(a, start, n) AS list_slice(a, start, start + n - 1)",
    "array_join(a, separator) AS array_to_string(a, separator)",
    "size(a) AS CAST(len(a) AS INT)",
    "explode(a) AS unnest(a)",
    "regexp_like(s, pattern) AS regexp_matches(s, pattern)",
    "startswith(s, start) AS starts_with(s, start)",
    "unix_micros(t) AS epoch_us(t)",
    "datediff(late, early) AS CAST(date_diff('day', early, late) AS INT)",
)
"""Functions with the names that Spark uses, so that one SQL text works on both."""

BATCH_ROWS = 20_000
EMPTY = "empty.parquet"


class DuckDB(Engine):
    """Tables are in a database file in the work folder, so they may exceed the memory."""

    def __init__(
        self,
        work: Path,
        *,
        memory: str = "2GB",
        threads: int | None = None,
        processes: int | None = None,
    ) -> None:
        super().__init__(work)
        self._memory = memory
        self._kinds: dict[str, str] = {}
        self._folders: dict[str, Path] = {}
        self._numbers = itertools.count()
        self._workers = Workers(processes or cores())
        scratch = self.work / "duckdb"
        with contextlib.ExitStack() as undo, self._explained():
            undo.callback(super().close)
            shutil.rmtree(scratch, ignore_errors=True)  # left by a killed run; maps are elsewhere
            scratch.mkdir()
            # a new file for each engine: DuckDB would wait for ever if a Python object of a failed
            # earlier engine still referred to the same file
            self._home = Path(tempfile.mkdtemp(dir=scratch))
            self._connection = self._connected(memory, threads or cores())
            for macro in MACROS:
                self._connection.execute(f"CREATE MACRO {macro}")
            undo.pop_all()

    def _connected(self, memory: str, threads: int) -> duckdb.DuckDBPyConnection:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "threads": threads,
            "temp_directory": str(self._home / "spilled"),
            "preserve_insertion_order": False,  # keeps large results out of memory
            "autoinstall_known_extensions": False,  # nothing goes over the network
        }
        try:
            connection = duckdb.connect(str(self._home / "tables.db"), config=settings)
            connection.execute(f"SET memory_limit = {self.text(memory)}")
        except (duckdb.ParserException, duckdb.InvalidInputException) as error:
            raise UsageError(f"memory {memory}: {_first_line(error)}") from None
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET enable_progress_bar = false")  # the command line has its own
        return connection

    def table(self, name: str, data: pa.Table) -> None:
        with self._explained():
            self._connection.register("_arrow", data)
            try:
                self._replace(name, "SELECT * FROM _arrow")
            finally:
                self._connection.unregister("_arrow")

    def create(self, name: str, query: str) -> None:
        with self._explained():
            self._replace(name, query)

    def view(self, name: str, query: str) -> None:
        with self._explained():
            self.drop(name)
            self._connection.execute(f'CREATE VIEW "{name}" AS {query}')
            self._kinds[name] = "VIEW"

    def drop(self, name: str) -> None:
        if kind := self._kinds.pop(name, None):
            self._connection.execute(f'DROP {kind} "{name}"')
        if folder := self._folders.pop(name, None):
            shutil.rmtree(folder, ignore_errors=True)

    def _replace(self, name: str, query: str) -> None:
        # the old table is dropped last, because the query may read it
        self._connection.execute('DROP TABLE IF EXISTS "_new"')
        self._connection.execute(f'CREATE TABLE "_new" AS {query}')
        self.drop(name)
        self._connection.execute(f'ALTER TABLE "_new" RENAME TO "{name}"')
        self._kinds[name] = "TABLE"

    def _map(self, job: MapJob) -> None:
        key = job.part_key
        folder = self._part_folder(job.name, key)
        with self._explained():
            write_part(folder / EMPTY, iter(()), job.schema)  # a view needs at least one file
            if job.parallel:
                rows = self.scalar(f"SELECT count(*) FROM ({job.source_query})")
                size, total = pieces(rows, job.piece_rows)
                parts = _Parts(folder, size, total, key is not None, job.on_progress)
                with self._plain_rows(job.source_query) as batches:
                    self._compute(parts.missing(batches), job, parts.advance, total)
                parts.remove_others()
            else:
                with self._plain_rows(job.source_query) as batches:
                    write_part(folder / "all.parquet", job.function(batches), job.schema)
                if job.on_progress:
                    job.on_progress(1, 1)
            files = "".join(f"[{c}]" if c in "[*?" else c for c in str(folder)) + "/*.parquet"
            source = f"read_parquet({self.text(files)}, hive_partitioning = false)"
            self.view(job.name, f"SELECT * FROM {source}")
        if key is None:
            self._folders[job.name] = folder

    def _compute(
        self,
        tasks: Iterator[tuple[bytes, Path]],
        job: MapJob,
        advance: Callable[[], None],
        total: int,
    ) -> None:
        if total <= 1 or self._workers.processes == 1:  # not worth another process
            for piece, part in tasks:
                write_part(part, job.function(unpack(piece)), job.schema)
                advance()
            return
        path = self._home / f"job-{next(self._numbers)}"
        save_job(path, job.function, job.schema)
        with contextlib.closing(self._workers.run(path, tasks)) as run:
            for _ in run:
                advance()
        path.unlink()

    def _part_folder(self, name: str, key: str | None) -> Path:
        """Return the folder of a map's part files; without a key, a new one that is not kept."""
        if key is None:
            folder = self._home / f"{name}.{next(self._numbers)}"
        else:
            sums = hashlib.blake2b(key.encode(), digest_size=12).hexdigest()
            folder = self.work / "maps" / f"{name}-{sums}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def array(self, *items: str) -> str:
        return f"[{', '.join(items)}]" if items else "CAST([] AS VARCHAR[])"

    def text(self, value: str) -> str:
        return "'" + value.replace("'", "''") + "'"

    @contextlib.contextmanager
    def _rows(self, query: str) -> Iterator[pa.RecordBatchReader]:
        # a separate cursor, so that other queries can run while this one is read
        with self._connection.cursor() as cursor:
            relation = cursor.sql(query)
            if hasattr(relation, "to_arrow_reader"):
                reader = relation.to_arrow_reader(BATCH_ROWS)
            else:  # before DuckDB 1.5
                reader = relation.fetch_arrow_reader(BATCH_ROWS)
            yield reader

    @contextlib.contextmanager
    def _plain_rows(self, query: str) -> Iterator[Iterator[pa.RecordBatch]]:
        with self._rows(query) as reader:
            schema = plain(reader.schema)
            yield (conform(batch, schema) for batch in reader)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (duckdb.Error, OSError, MemoryError, pa.ArrowException) as error:
            failure = machine_failure(error, self.work)
            if failure is None:
                raise
            # an error of DuckDB's own limit arrives through an Arrow stream as text only
            if "Out of Memory Error" in str(error) and "disk" not in str(failure):
                failure = ResourceError(
                    f"DuckDB needs more memory than its limit of {self._memory}; allow it more"
                )
            raise failure from None

    def close(self) -> None:
        self._workers.close()
        self._connection.close()
        shutil.rmtree(self._home.parent, ignore_errors=True)
        super().close()


class _Parts:
    """The part files of a map."""

    def __init__(
        self, folder: Path, size: int, total: int, keyed: bool, on_progress: Progress | None
    ) -> None:
        self._folder, self._size, self._total = folder, size, total
        self._keyed, self._on_progress = keyed, on_progress
        self._names = {EMPTY}
        self._done = 0

    def missing(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[bytes, Path]]:
        """Yield the pieces that no earlier run computed, each with the file for its result."""
        counts: Counter[str] = Counter()  # the same rows may occur twice
        for number, group in enumerate(regroup(batches, self._size)):
            name = digest(group) if self._keyed else f"{number:08}"
            part = self._folder / f"{name}-{counts[name]}.parquet"
            counts[name] += 1
            self._names.add(part.name)
            if part.exists():
                self.advance()
            else:
                yield pack(group, group[0].schema), part

    def advance(self) -> None:
        self._done += 1
        if self._on_progress:
            self._on_progress(self._done, self._total)

    def remove_others(self) -> None:
        """Remove parts of other rows, and files that a killed worker left unfinished."""
        for file in self._folder.iterdir():
            if file.name not in self._names:
                file.unlink()


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
