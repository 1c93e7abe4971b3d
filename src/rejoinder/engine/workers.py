"""Worker processes of the DuckDB engine, which compute pieces and write them as Parquet parts."""

from __future__ import annotations

import os
import pickle
from collections.abc import Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from rejoinder.engine.engine import Function
from rejoinder.engine.tables import unpack, write_rows
from rejoinder.errors import ResourceError
from rejoinder.worker_pool import DIED, WorkerPool


class Workers(WorkerPool):
    """A pool of processes that compute pieces of a job."""

    def run(self, job: Path, tasks: Iterable[tuple[bytes, Path]]) -> Generator[None, None, None]:
        """Compute pieces with the function in the file ``job``; yield after each one.

        Tasks are taken from the iterator only as fast as they are computed, to limit memory. After
        a failure, running pieces are finished, so that a later run need not repeat them.
        """
        running: set[Future[None]] = set()
        try:
            for piece, part in tasks:
                running.add(self.submit(compute, str(job), piece, str(part)))
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
            raise ResourceError(f"{DIED}; run the command again to resume") from None
        except Exception:
            for future in running:
                future.cancel()
            wait(running)
            raise
        except BaseException:  # interrupted, or the caller stopped
            self.close()
            raise


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
