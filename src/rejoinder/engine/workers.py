"""Worker processes of the DuckDB engine, which compute pieces and write them as Parquet parts.

Processes are spawned, not forked: a fork of a process with threads (DuckDB, Arrow, numba) may hang.
They end with their parent, even if it is killed.
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
    """A pool of processes, started when it is first used."""

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self._pool: ProcessPoolExecutor | None = None
        self._pipe: Connection | None = None

    def run(self, job: Path, tasks: Iterable[tuple[bytes, Path]]) -> Generator[None, None, None]:
        """Compute pieces with the function in the file ``job``; yield after each one.

        Tasks are taken from the iterator only as fast as they are computed, to limit memory. After
        a failure, running pieces are finished, so that a later run need not repeat them.
        """
        pool = self._start()
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
                " run the command again to resume"
            ) from None
        except Exception:
            for future in running:
                future.cancel()
            wait(running)
            raise
        except BaseException:  # interrupted, or the caller stopped
            self.close()
            raise

    def _start(self) -> ProcessPoolExecutor:
        if self._pool is None:
            context = get_context("spawn")
            end, self._pipe = context.Pipe(duplex=False)
            self._pool = ProcessPoolExecutor(
                self.processes, mp_context=context, initializer=_initialize, initargs=(end,)
            )
        return self._pool

    def close(self) -> None:
        """End the processes at once."""
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


def _initialize(pipe: Connection) -> None:
    """Initialize a worker: ignore Ctrl-C, and exit when the parent closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        with contextlib.suppress(EOFError, OSError):
            pipe.recv_bytes()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def save_job(path: Path, function: Function, schema: pa.Schema) -> None:
    """Pickle a function for the workers once: it may hold large tables."""
    path.write_bytes(pickle.dumps((function, schema)))


@lru_cache(maxsize=1)
def _load_job(path: str) -> tuple[Function, pa.Schema]:
    function, schema = pickle.loads(Path(path).read_bytes())
    return function, schema


def compute(job: str, piece: bytes, part: str) -> None:
    """Apply the function to one piece, in a worker, and write its part file."""
    function, schema = _load_job(job)
    try:
        write_part(Path(part), function(unpack(piece)), schema)
    except Exception as error:
        raise _picklable(error) from None


def write_part(part: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
    """Write a part file, which appears whole or not at all."""
    hidden = part.with_name(f".{part.name}.{os.getpid()}")
    try:
        write_rows(hidden, batches, schema)
        os.replace(hidden, part)
    except BaseException:
        hidden.unlink(missing_ok=True)
        raise


def _picklable(error: Exception) -> Exception:
    """Return the error if it can be pickled, else one with its text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
