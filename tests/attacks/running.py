"""Run a command line in this process, with a time limit, and check how it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rejoinder.cli.main import run

SECONDS = 60
MAX_LINES = 8


@contextlib.contextmanager
def time_limit(seconds: int = SECONDS) -> Iterator[None]:
    """Interrupt a command that hangs, for example on a pipe that nobody writes to."""

    def stop(*_: object) -> None:
        raise AssertionError(f"still running after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str], codes: tuple[int, ...] = (2, 3, 4)
) -> str:
    """Run a command that must fail as the design says; returns its last message.

    With 0 among the codes it may also succeed; then the message is empty.
    """
    with time_limit():
        code = run(arguments)
    messages = capsys.readouterr().err
    if code == 0 and 0 in codes:
        return ""
    lines = messages.splitlines()
    assert code in codes, f"{arguments}: exit code {code}\n{messages}"
    assert lines, f"{arguments}: exit code {code} without a message"
    assert lines[-1].startswith("rejoinder: "), messages
    assert len(lines) <= MAX_LINES, messages
    assert "Traceback" not in messages
    assert len(lines[-1]) < 100_000
    return lines[-1]


def left_behind(folder: Path) -> list[str]:
    """Names of everything below a folder of outputs."""
    return sorted(
        os.path.relpath(os.path.join(base, name), folder)
        for base, folders, names in os.walk(folder)
        for name in (*folders, *names)
    )


def is_root() -> bool:
    return sys.platform != "win32" and os.getuid() == 0
