"""Worker processes that end with their parent, even if it is killed.

Processes are spawned, not forked: a fork of a process with threads (DuckDB, Arrow, numba) may hang.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from rejoinder.errors import ResourceError

Task = TypeVar("Task")
Result = TypeVar("Result")

DIED = "a worker process died: it was killed, or the memory was too small"


class WorkerPool:
    """Processes, started when they are first used; ``prepare`` runs in each of them before."""

    def __init__(
        self, processes: int, prepare: Callable[..., None] | None = None, *arguments: Any
    ) -> None:
        self.processes = processes
        self._prepare, self._arguments = prepare, arguments
        self._pool: ProcessPoolExecutor | None = None
        self._pipe: Connection | None = None

    def submit(self, function: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Let a process call a function."""
        if self._pool is None:
            context = get_context("spawn")
            end, self._pipe = context.Pipe(duplex=False)
            self._pool = ProcessPoolExecutor(
                self.processes,
                mp_context=context,
                initializer=_initialize,
                initargs=(end, self._prepare, self._arguments),
            )
        return self._pool.submit(function, *arguments)

    def map(
        self, function: Callable[[Task], Result], tasks: Iterable[Task]
    ) -> Iterator[tuple[Task, Result]]:
        """Yield each task with its result, in the order of the tasks.

        Tasks are taken only as fast as they are computed, to limit memory. An error of the tasks is
        raised after the results of those before it.
        """
        running: deque[tuple[Task, Future[Result]]] = deque()
        problem: Exception | None = None
        stream = iter(tasks)
        try:
            while True:
                while problem is None and len(running) < 2 * self.processes:
                    try:
                        task = next(stream)
                    except StopIteration:
                        break
                    except Exception as error:
                        problem = error
                        break
                    running.append((task, self.submit(function, task)))
                if not running:
                    break
                task, future = running.popleft()
                yield task, future.result()
        except BrokenProcessPool:
            raise ResourceError(f"{DIED}; fewer processes need less memory") from None
        finally:
            if running:  # interrupted, or failed
                self.close()
        if problem is not None:
            raise problem

    def close(self) -> None:
        """End the processes at once."""
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


def _initialize(pipe: Connection, prepare: Callable[..., None] | None, arguments: Any) -> None:
    """Initialize a worker: ignore Ctrl-C, and exit when the parent closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        with contextlib.suppress(EOFError, OSError):
            pipe.recv_bytes()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    if prepare is not None:
        prepare(*arguments)
