"""Run a program that reads lines and writes lines, without a shell.

Lines are written by a thread of its own: a program may read everything before it writes anything,
or write so much that its input has to wait. What it prints on stderr is shown if it fails.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shlex
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from typing import IO

from rejoinder.errors import DataError, MissingExtra
from rejoinder.files.paths import reason

MAX_LINE = 16 * 2**20
"""Bytes of a line."""
MAX_STDERR = 1000
"""Bytes at the end of stderr that are shown."""
GRACE = 5.0
"""Seconds that a program has to end after its last line, or after it is asked to."""


class Program:
    """A program with its arguments, as they are written in a shell."""

    def __init__(self, run: str, timeout: float) -> None:
        self._run, self._timeout = run, timeout
        self._stderr: IO[bytes] | None = None
        self._lines_read = 0

    @contextlib.contextmanager
    def running(self, lines: Iterable[bytes]) -> Iterator[Iterator[bytes]]:
        """Start the program, feed it lines, and give the lines that it writes.

        DataError if it writes nothing for too long or ends with another code than 0. At the end of
        the block it does not run any more, whatever happened.
        """
        with tempfile.TemporaryFile() as self._stderr:
            process = self._start()
            received: queue.Queue[bytes | None] = queue.Queue()
            threads = [
                threading.Thread(target=_feed, args=(process.stdin, lines), daemon=True),
                threading.Thread(target=_receive, args=(process.stdout, received), daemon=True),
            ]
            for thread in threads:
                thread.start()
            try:
                yield self._lines(received)
                self._check_end(process)
            finally:
                _stop(process, threads)

    def wrong(self, message: str, line: int | None = None) -> DataError:
        """Return the error for a line of the program, by default for the one that did not come."""
        line = self._lines_read + 1 if line is None else line
        return DataError(message + self._said(), path=f"output of '{self._run}'", line=line)

    def _said(self) -> str:
        """Return the end of what the program printed on stderr, as the end of a message."""
        if self._stderr is None or self._stderr.closed:
            return ""
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - MAX_STDERR))
        text = " ".join(self._stderr.read().decode("utf-8", "replace").split())
        return f"; it said: {text}" if text else ""

    def _start(self) -> subprocess.Popen[bytes]:
        words = shlex.split(self._run)
        try:
            return subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = reason(error) if isinstance(error, OSError) else str(error)
            raise MissingExtra(f"the program '{words[0]}' cannot be started: {why}") from None

    def _lines(self, received: queue.Queue[bytes | None]) -> Iterator[bytes]:
        while True:
            try:
                line = received.get(timeout=self._timeout)
            except queue.Empty:
                raise self.wrong(
                    f"nothing was written for {self._timeout:g} s, so the program was ended"
                ) from None
            if line is None:
                return
            self._lines_read += 1
            if len(line) > MAX_LINE:
                raise self.wrong(f"more than {MAX_LINE // 2**20} MB", self._lines_read)
            yield line

    def _check_end(self, process: subprocess.Popen[bytes]) -> None:
        try:
            code = process.wait(GRACE)
        except subprocess.TimeoutExpired:
            return  # it has said everything
        if code:
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise self.wrong(f"the program ended with {how}")


def _feed(stream: IO[bytes] | None, lines: Iterable[bytes]) -> None:
    """Write all lines; a program that has stopped reading is noticed by what it writes."""
    assert stream is not None
    with contextlib.suppress(OSError, ValueError):
        for line in lines:
            stream.write(line)
            stream.flush()
    with contextlib.suppress(OSError, ValueError):
        stream.close()


def _receive(stream: IO[bytes] | None, received: queue.Queue[bytes | None]) -> None:
    assert stream is not None
    with contextlib.suppress(OSError, ValueError):
        while line := stream.readline(MAX_LINE + 1):
            received.put(line)
    received.put(None)


def _stop(process: subprocess.Popen[bytes], threads: Iterable[threading.Thread]) -> None:
    """End the program with all that it started, and close its pipes."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
    for thread, stream in zip(threads, (process.stdin, process.stdout), strict=True):
        thread.join(GRACE)
        # a pipe that another process still holds would block its closing
        if stream is not None and not thread.is_alive():
            with contextlib.suppress(OSError, ValueError):
                stream.close()
