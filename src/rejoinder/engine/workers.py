"""Worker processes of the DuckDB engine: each computes pieces and writes them as Parquet parts.

Processes are spawned, not forked: a fork of a process with threads (DuckDB, Arrow, numba) may
hang. They end with their parent, also when that is killed.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import threading
from collections.abc import Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import pyarrow as pa

from rejoinder.engine.engine import Function
from rejoinder.engine.tables import unpack, write_rows
from rejoinder.errors import ResourceError


class Workers:
    """A pool that is started when it is first needed, and kept: starting costs a second."""

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self._pool: ProcessPoolExecutor | None = None
        self._leash: Connection | None = None

    def run(self, job: Path, tasks: Iterable[tuple[bytes, Path]]) -> Generator[None, None, None]:
        """Compute pieces with the function in the file ``job``; yields after each one.

        Tasks are taken only as fast as they are worked on, so that they never fill the memory.
        After a failure, pieces under way are finished: a later run need not repeat them.
        """
        pool = self._started()
        running: set[Future[None]] = set()
        try:
            for piece, part in tasks:
                running.add(pool.submit(compute, str(job), piece, str(part)))
                if len(running) >= 2 * self.processes:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield future.result()
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        except BrokenProcessPool:
            self.close()
            raise ResourceError(
                "a worker process died: it was killed, or the memory was too small;"
                " run the command again to go on where it stopped"
            ) from None
        except Exception:
            for future in running:
                future.cancel()
            wait(running)
            raise
        except BaseException:  # interrupted, or the caller does not want the rest
            self.close()
            raise

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            context = get_context("spawn")
            end, self._leash = context.Pipe(duplex=False)
            self._pool = ProcessPoolExecutor(
                self.processes, mp_context=context, initializer=_begin, initargs=(end,)
            )
        return self._pool

    def close(self) -> None:
        """End the processes at once, whatever they are doing."""
        if self._leash is not None:
            self._leash.close()
            self._leash = None
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


def _begin(leash: Connection) -> None:
    """In a new worker: leave Ctrl-C to the parent, and end when the parent lets go."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        with contextlib.suppress(EOFError, OSError):
            leash.recv_bytes()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def save_job(path: Path, function: Function, schema: pa.Schema) -> None:
    """Keep a function for the workers: sent once, it may carry large tables of its own."""
    path.write_bytes(pickle.dumps((function, schema)))


@lru_cache(maxsize=1)
def _load_job(path: str) -> tuple[Function, pa.Schema]:
    function, schema = pickle.loads(Path(path).read_bytes())
    return function, schema


def compute(job: str, piece: bytes, part: str) -> None:
    """In a worker: one piece through the function, into its part file."""
    function, schema = _load_job(job)
    try:
        write_part(Path(part), function(unpack(piece)), schema)
    except Exception as error:
        raise _portable(error) from None


def write_part(part: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
    """A part file is whole or absent."""
    beside = part.with_name(f".{part.name}.{os.getpid()}")
    try:
        write_rows(beside, batches, schema)
        os.replace(beside, part)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _portable(error: Exception) -> Exception:
    """The error, if it survives the way to the parent; else its text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
