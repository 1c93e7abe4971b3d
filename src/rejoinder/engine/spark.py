"""Spark, the engine for a cluster: the same SQL, and ``mapInArrow`` for the functions.

The work folder must be on a file system that driver and executors share, and every node needs
the Python of the driver with rejoinder installed (or set ``PYSPARK_PYTHON``). Results of maps
and of ``create`` are kept as Parquet files there, so that losing an executor costs its running
tasks and no more.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import itertools
import logging
import os
import pickle
import re
import shutil
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from rejoinder.engine.engine import FEW, Engine, Function, machine_failure, pieces
from rejoinder.engine.tables import conform, plain, write_rows
from rejoinder.errors import MissingExtra, ResourceError, UsageError
from rejoinder.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

REACH = 10.0
"""Seconds to wait until a master answers the telephone."""

START = 60.0
"""Seconds to wait until a master takes the application, and until it gives an executor."""

SETTINGS = {
    "spark.app.name": "rejoinder",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "5000",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.cteRecursionLevelLimit": "-1",
    "spark.sql.cteRecursionRowLimit": "-1",
}

FAILURE = re.compile(r"<rejoinder-failure>([A-Za-z0-9+/=]*)</rejoinder-failure>")


class Spark(Engine):
    """Tables are temporary views of one Spark session; a process has one at a time."""

    def __init__(self, work: Path, master: str) -> None:
        _check_installed()
        if master.startswith("spark://"):
            _check_reachable(master)
        super().__init__(work)
        self._master = master
        self._numbers = itertools.count()
        self._folders: dict[str, Path] = {}
        self._views: set[str] = set()
        self._home = self.work / "spark"
        shutil.rmtree(self._home, ignore_errors=True)  # of a killed run: maps are kept apart
        self._home.mkdir()
        try:
            self._session = _started(master, self._home, self.work / "spark.log")
        except BaseException:
            super().close()
            raise

    def table(self, name: str, data: pa.Table) -> None:
        with self._explained():
            folder = self._new_folder(name)
            folder.mkdir()
            write_rows(folder / "part-00000.parquet", data.to_batches(), data.schema)
            self._keep(name, folder)

    def create(self, name: str, query: str) -> None:
        with self._explained():
            folder = self._new_folder(name)
            write = self._session.sql(query).write
            self._wait(lambda: write.parquet(folder.as_uri()))
            self._keep(name, folder)

    def view(self, name: str, query: str) -> None:
        with self._explained():
            self.drop(name)
            self._session.sql(f"CREATE TEMPORARY VIEW `{name}` AS {query}")
            self._views.add(name)

    def drop(self, name: str) -> None:
        if name in self._views:
            self._session.catalog.dropTempView(name)
            self._views.remove(name)
        if folder := self._folders.pop(name, None):
            shutil.rmtree(folder, ignore_errors=True)

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
        with self._explained():
            source = self._session.sql(source_query)
            total, dealt = 1, source.coalesce(1)
            if parallel and (rows := self._wait(source.count)):
                total = pieces(rows, piece_rows)[1]
                # jobs are dealt out of one partition, which gives each task exactly its share
                dealt = (dealt if rows <= FEW else source).repartition(total)
            if resume_key and parallel:
                folder = self._resumable(name, source_query, f"{resume_key}\n{schema.to_string()}")
            else:
                folder = self._new_folder(name)
            if not (folder / "_SUCCESS").exists():
                mapped = _map_in_arrow(dealt, _carrying(function, schema), schema)
                write = mapped.write.mode("overwrite")
                self._wait(lambda: write.parquet(folder.as_uri()), total, on_progress)
            self._keep(name, folder, temporary=folder.parent == self._home)
            if on_progress:
                on_progress(total, total)

    def _resumable(self, name: str, query: str, key: str) -> Path:
        """The folder of a map of exactly these rows, whatever their order."""
        rows = self.fetch(
            "SELECT count(*) AS n, CAST(sum(CAST(xxhash64(*) AS DECIMAL(38, 0))) AS STRING) AS sums"
            f" FROM ({query})"
        )
        key += f"\n{rows.to_pylist()}"
        sums = hashlib.blake2b(key.encode(), digest_size=12).hexdigest()
        return self.work / "maps" / f"{name}-{sums}.spark"

    def _new_folder(self, name: str) -> Path:
        return self._home / f"{name}.{next(self._numbers)}"

    def _keep(self, name: str, folder: Path, *, temporary: bool = True) -> None:
        """Give the Parquet files of a folder a name."""
        data = self._session.read.parquet(folder.as_uri())
        self.drop(name)
        data.createTempView(name)
        self._views.add(name)
        if temporary:
            self._folders[name] = folder

    def _wait(self, job: Callable[[], T], total: int = 0, on_progress: Progress | None = None) -> T:
        """Run a job and tell how many of its tasks are done; give up if nobody works on it."""
        context = self._session.sparkContext
        tracker = context.statusTracker()
        alive = time.monotonic()
        with ThreadPoolExecutor(1) as thread:
            running = thread.submit(job)
            try:
                while not wait([running], timeout=0.25).done:
                    stages = [tracker.getStageInfo(i) for i in tracker.getActiveStageIds()]
                    done = [s.numCompletedTasks for s in stages if s and s.numTasks == total]
                    if done and on_progress:
                        on_progress(max(done), total)
                    if self._executors():
                        alive = time.monotonic()
                    elif time.monotonic() - alive > START:
                        raise self._lost()  # Spark itself would wait for ever
            except BaseException:  # interrupted: do not wait for the rest of the job
                context.cancelAllJobs()
                raise
            return running.result()

    def _executors(self) -> int:
        if self._master.startswith("local"):
            return 1
        context: Any = self._session.sparkContext
        return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1  # without the driver

    def _lost(self) -> ResourceError:
        return ResourceError(
            f"lost the Spark master {self._master} or all its workers;"
            f" run the command again to go on (details: {self.work / 'spark.log'})"
        )

    def array(self, *items: str) -> str:
        return f"array({', '.join(items)})" if items else "CAST(array() AS ARRAY<STRING>)"

    def text(self, value: str) -> str:
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    @contextlib.contextmanager
    def _rows(self, query: str) -> Iterator[pa.RecordBatchReader]:
        # through files, not through the driver's memory; their numbers follow the ORDER BY
        folder = self._new_folder("rows")
        data = self._session.sql(query)
        try:
            self._wait(lambda: data.write.parquet(folder.as_uri()))
            schema = plain(_arrow_schema(data))
            yield pa.RecordBatchReader.from_batches(schema, _read(folder, schema))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def fetch(self, query: str) -> pa.Table:
        with self._explained():
            data = self._session.sql(query)
            table = self._wait(data.toArrow)
            schema = plain(table.schema)
            return pa.Table.from_batches([conform(b, schema) for b in table.to_batches()], schema)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        try:
            yield
        except (Py4JError, PySparkException) as error:
            words = str(error)
            if carried := FAILURE.search(words):
                raise pickle.loads(base64.b64decode(carried[1])) from None
            if failure := machine_failure(error, self.work):
                raise failure from None
            if any(sign in words for sign in LOST):
                raise self._lost() from None
            raise
        except (OSError, MemoryError, pa.ArrowException) as error:
            if failure := machine_failure(error, self.work):
                raise failure from None
            raise

    def close(self) -> None:
        _stopped(self._session)
        shutil.rmtree(self._home, ignore_errors=True)
        super().close()


LOST = (
    "Master removed our application",
    "All masters are unresponsive",
    "SparkContext was shut down",
    "Cannot call methods on a stopped SparkContext",
    "An error occurred while trying to connect to the Java server",
    "Answer from Java side is empty",
)


def _carrying(function: Function, schema: pa.Schema) -> Function:
    """The function as Spark calls it: the same batches as elsewhere in, exactly the schema out.

    Spark reports a failure as the text of a traceback, so the exception travels in that text.
    """

    def carry(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for batch in function(conform(batch, plain(batch.schema)) for batch in batches):
                yield conform(batch, schema)
        except Exception as error:
            try:
                pickled = pickle.dumps(error)
                pickle.loads(pickled)
            except Exception:
                pickled = pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
            packed = base64.b64encode(pickled).decode()
            raise RuntimeError(f"<rejoinder-failure>{packed}</rejoinder-failure>") from error

    return carry


def _read(folder: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for file in sorted(folder.glob("part-*.parquet")):
        with pq.ParquetFile(file) as part:
            for batch in part.iter_batches(20_000):
                yield conform(batch, schema)


def _map_in_arrow(data: DataFrame, function: Function, schema: pa.Schema) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema

    return data.mapInArrow(function, from_arrow_schema(schema))


def _arrow_schema(data: DataFrame) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(data.schema, timezone="UTC")


def _check_installed() -> None:
    try:
        import pandas  # type: ignore[import-untyped]  # noqa: F401, mapInArrow insists on it
        import pyspark  # noqa: F401
    except ImportError:
        raise MissingExtra("Spark is not installed: pip install pyspark 'pandas<3'") from None
    home = os.environ.get("JAVA_HOME")
    if not shutil.which("java", path=f"{home}/bin" if home else None):
        raise MissingExtra(
            "Spark needs Java 17, and there is no java here; install it"
            " (for example: apt install openjdk-17-jre-headless) or set JAVA_HOME"
        )


def _unreachable(master: str) -> ResourceError:
    return ResourceError(
        f"cannot reach the Spark master {master}: is it running? try --engine duckdb"
    )


def _check_reachable(master: str) -> None:
    """Spark itself goes on trying for minutes."""
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit() or int(port) > 65535:
            raise UsageError(f"engine {master!r}: expected spark://host:port")
        with (
            contextlib.suppress(OSError),
            socket.create_connection((host.strip("[]"), int(port)), timeout=REACH),
        ):
            return
    raise _unreachable(master)


def _started(master: str, home: Path, log: Path) -> SparkSession:
    """A session whose Java writes to a log file and not between our messages."""
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext, java_gateway
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    launch: Callable[..., Any] = java_gateway.launch_gateway
    if SparkContext._active_spark_context is not None:
        raise UsageError("a Spark session is running in this process already; stop it first")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
    conf = SparkConf().setMaster(master)
    for key, value in SETTINGS.items():
        conf.set(key, value)
    if master.startswith("local"):
        conf.set("spark.driver.host", "127.0.0.1").set("spark.driver.bindAddress", "127.0.0.1")
        conf.set("spark.local.dir", str(home / "spilled"))
        conf.set("spark.driver.memory", "2g").set("spark.sql.shuffle.partitions", "16")
    if SparkContext._gateway is None:
        with open(log, "wb") as stream:
            try:
                gateway = launch(conf, {"stdout": stream, "stderr": stream})
            except PySparkException:
                raise ResourceError(
                    f"Spark did not start: it needs Java 17 (details: {log})"
                ) from None
    else:
        gateway = SparkContext._gateway
    patience = threading.Timer(START, gateway.proc.kill)
    patience.start()
    try:
        context = SparkContext(conf=conf, gateway=gateway)
        context.setLogLevel("WARN")
        session = SparkSession(context)
    except (Py4JError, PySparkException, OSError):
        _forget(gateway)
        raise _unreachable(master) from None
    finally:
        patience.cancel()
    try:
        _check_executors(session, master)
    except BaseException:
        _stopped(session)
        raise
    return session


def _check_executors(session: SparkSession, master: str) -> None:
    """A master without free workers lets jobs wait for ever."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    patience = threading.Timer(START, session.sparkContext.cancelAllJobs)
    patience.start()
    try:
        session.range(1, numPartitions=1).count()
    except (Py4JError, PySparkException):
        raise ResourceError(
            f"the Spark master {master} gave no executor within {START:.0f} seconds:"
            " are its workers running and free? try --engine duckdb"
        ) from None
    finally:
        patience.cancel()


def _stopped(session: SparkSession) -> None:
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    with contextlib.suppress(Exception):  # whatever is left of it: the process ends below
        session.stop()
    _forget(gateway)


def _forget(gateway: Any) -> None:
    """End the Java process too: it holds a GB, and the next session may want other settings."""
    from pyspark import SparkContext

    with contextlib.suppress(Exception):
        gateway.shutdown()
    gateway.proc.kill()
    gateway.proc.wait()
    gateway.proc.stdin.close()
    SparkContext._active_spark_context = None
    SparkContext._gateway = SparkContext._jvm = None
