"""The Spark engine for a cluster: the same SQL, and ``mapInArrow`` for functions.

The work folder must be on a file system that driver and executors share, and every node needs the
Python of the driver with rejoinder installed (or set ``PYSPARK_PYTHON``). Results of ``map`` and
``create`` are stored there as Parquet files, so a lost executor costs only its running tasks.
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

from rejoinder.engine.engine import MAX_JOBS, Engine, Function, MapJob, machine_failure, pieces
from rejoinder.engine.tables import conform, plain, write_rows
from rejoinder.errors import MissingExtra, ResourceError, UsageError, missing_extra
from rejoinder.progress import Progress
from rejoinder.wording import option

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

CONNECT_SECONDS = 10.0
"""Timeout for the connection to a master."""

START_SECONDS = 60.0
"""Timeout for a master to accept the application, and to provide an executor."""

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
    """Tables are temporary views of one Spark session; a process has one session at a time."""

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
        shutil.rmtree(self._home, ignore_errors=True)  # left by a killed run; maps are elsewhere
        self._home.mkdir()
        try:
            self._session = _start_session(master, self._home, self.work / "spark.log")
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

    def _map(self, job: MapJob) -> None:
        with self._explained():
            source = self._session.sql(job.source_query)
            total, partitions = 1, source.coalesce(1)
            if job.parallel and (rows := self._wait(source.count)):
                total = pieces(rows, job.piece_rows)[1]
                # round-robin from one partition gives each task exactly one job
                partitions = (partitions if rows <= MAX_JOBS else source).repartition(total)
            if job.part_key is not None:
                folder = self._resumable(job.name, job.source_query, job.part_key)
            else:
                folder = self._new_folder(job.name)
            if not (folder / "_SUCCESS").exists():
                function = _with_picklable_errors(job.function, job.schema)
                write = _map_in_arrow(partitions, function, job.schema).write.mode("overwrite")
                self._wait(lambda: write.parquet(folder.as_uri()), total, job.on_progress)
            self._keep(job.name, folder, temporary=folder.parent == self._home)
            if job.on_progress:
                job.on_progress(total, total)

    def _resumable(self, name: str, query: str, key: str) -> Path:
        """Return the folder of a map of exactly these rows, in any order."""
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
        """Create a view of the Parquet files of a folder."""
        data = self._session.read.parquet(folder.as_uri())
        self.drop(name)
        data.createTempView(name)
        self._views.add(name)
        if temporary:
            self._folders[name] = folder

    def _wait(self, job: Callable[[], T], total: int = 0, on_progress: Progress | None = None) -> T:
        """Run a job and report its finished tasks; give up if there is no executor."""
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
                    elif time.monotonic() - alive > START_SECONDS:
                        raise self._lost()  # Spark would wait for ever
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
        # through files, not the memory of the driver; their numbers follow the ORDER BY
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
            text = str(error)
            if carried := FAILURE.search(text):
                raise pickle.loads(base64.b64decode(carried[1])) from None
            if failure := machine_failure(error, self.work):
                raise failure from None
            if any(sign in text for sign in LOST):
                raise self._lost() from None
            raise
        except (OSError, MemoryError, pa.ArrowException) as error:
            if failure := machine_failure(error, self.work):
                raise failure from None
            raise

    def close(self) -> None:
        _stop_session(self._session)
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


def _with_picklable_errors(function: Function, schema: pa.Schema) -> Function:
    """Return the function that Spark calls: with batches as on DuckDB, and results of the schema.

    Spark reports a failure as the text of a traceback, so the pickled exception is put into it.
    """

    def apply(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
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

    return apply


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
        import pandas  # type: ignore[import-untyped]  # noqa: F401, required by mapInArrow
        import pyspark  # noqa: F401
    except ImportError:
        raise missing_extra("spark", "pyspark", "pandas<3", task="the engine Spark") from None
    home = os.environ.get("JAVA_HOME")
    if not shutil.which("java", path=f"{home}/bin" if home else None):
        raise MissingExtra(
            "Spark needs Java 17, and java was not found; install it"
            " (for example: apt install openjdk-17-jre-headless) or set JAVA_HOME"
        )


def _unreachable(master: str) -> ResourceError:
    return ResourceError(
        f"cannot reach the Spark master {master}: is it running? try {option('engine', 'duckdb')}"
    )


def _check_reachable(master: str) -> None:
    """Raise ResourceError unless the master accepts connections: Spark tries for minutes."""
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit() or int(port) > 65535:
            raise UsageError(f"engine {master!r}: expected spark://host:port")
        with (
            contextlib.suppress(OSError),
            socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS),
        ):
            return
    raise _unreachable(master)


def _start_session(master: str, home: Path, log: Path) -> SparkSession:
    """Start a session whose Java process writes to a log file instead of stderr."""
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
    timer = threading.Timer(START_SECONDS, gateway.proc.kill)
    timer.start()
    try:
        context = SparkContext(conf=conf, gateway=gateway)
        context.setLogLevel("WARN")
        session = SparkSession(context)
    except (Py4JError, PySparkException, OSError):
        _kill_gateway(gateway)
        raise _unreachable(master) from None
    finally:
        timer.cancel()
    try:
        _check_executors(session, master)
    except BaseException:
        _stop_session(session)
        raise
    return session


def _check_executors(session: SparkSession, master: str) -> None:
    """Raise ResourceError if the master has no free worker: Spark would wait for ever."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    timer = threading.Timer(START_SECONDS, session.sparkContext.cancelAllJobs)
    timer.start()
    try:
        session.range(1, numPartitions=1).count()
    except (Py4JError, PySparkException):
        raise ResourceError(
            f"the Spark master {master} provided no executor within {START_SECONDS:.0f} seconds:"
            f" are its workers running and free? try {option('engine', 'duckdb')}"
        ) from None
    finally:
        timer.cancel()


def _stop_session(session: SparkSession) -> None:
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    with contextlib.suppress(Exception):  # the process is killed below
        session.stop()
    _kill_gateway(gateway)


def _kill_gateway(gateway: Any) -> None:
    """Kill the Java process: it takes a GB, and the next session may have other settings."""
    from pyspark import SparkContext

    with contextlib.suppress(Exception):
        gateway.shutdown()
    gateway.proc.kill()
    gateway.proc.wait()
    gateway.proc.stdin.close()
    SparkContext._active_spark_context = None
    SparkContext._gateway = SparkContext._jvm = None
