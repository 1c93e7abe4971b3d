"""The steps of a recipe, one after the other, each in a process of its own.

A process a step: its memory (a pool, a network, compiled kernels) is free before the next one
starts, the state of a library can't leak from one step into the next, and a step that the system
kills for want of memory is named. The price is about a second a step for starting Python.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from rejoinder.errors import RejoinderError, UsageError
from rejoinder.io import open_output
from rejoinder.recipe.file import Recipe, Step
from rejoinder.recipe.state import Memory

PROGRAM = (sys.executable, "-c", "from rejoinder.cli.main import main; main()")
PATIENCE = 20
"""Seconds that an interrupted step has to clean up."""


@dataclass(frozen=True)
class Outcome:
    """What became of a step."""

    name: str
    state: Literal["done", "skipped"]
    seconds: float


class StepFailed(RejoinderError):
    """A step ended badly; the run ends with its exit code."""

    def __init__(self, step: Step, message: str, exit_code: int, log: Path) -> None:
        self.exit_code, self.log = exit_code, log
        super().__init__(f"step '{step.name}' {message}")


Start = Callable[[Step, int], None]
Finish = Callable[[Outcome, int], None]


def run_recipe(
    recipe: Recipe, work: Path, *, on_start: Start, on_finish: Finish, show_messages: bool = False
) -> list[Outcome]:
    """Do what is not done yet. What a step prints goes to ``work/logs``; with ``show_messages``
    its messages and progress go where ours go."""
    with _alone_in(work) as lock:
        memory = Memory(work)
        outcomes = []
        for number, step in enumerate(recipe.steps, 1):
            if memory.done(step):
                outcome = Outcome(step.name, "skipped", 0.0)
            else:
                on_start(step, number)
                outcome = Outcome(step.name, "done", _do(step, memory, work, show_messages, lock))
            on_finish(outcome, number)
            outcomes.append(outcome)
        return outcomes


def pending(recipe: Recipe, work: Path) -> list[bool]:
    """For each step whether a run would do it, as far as can be said before."""
    memory = Memory(work)
    remade: set[str] = set()
    waiting = []
    for step in recipe.steps:
        waits = bool(remade & set(step.reads)) or not memory.done(step)
        if waits:
            remade |= set(step.makes)
        waiting.append(waits)
    return waiting


def _do(step: Step, memory: Memory, work: Path, show_messages: bool, lock: int) -> float:
    log = work / "logs" / f"{step.name}.txt"
    missing = [path for path in step.reads if not os.path.exists(path)]
    if missing:
        raise StepFailed(step, f"needs {', '.join(missing)}, which is not there", 3, log)
    key = memory.key(step)
    memory.forget(step)
    for path in [*step.makes, str(log)]:
        _make_folder(Path(path).parent)
    started = time.monotonic()
    with log.open("wb") as messages, _stdout(step, messages) as out:
        process = subprocess.Popen(
            [*PROGRAM, *step.arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=None if show_messages else messages,
            # if we are killed at once, nobody else works here until the step has ended, too
            pass_fds=[lock],
        )
        code = _wait(process)
        if code:
            how = f"was killed by signal {-code}" if code < 0 else f"failed with exit code {code}"
            raise StepFailed(step, how, 128 - code if code < 0 else code, log)
    absent = [path for path in step.makes if not os.path.exists(path)]
    if absent:
        raise StepFailed(step, f"did not make {', '.join(absent)}", 3, log)
    seconds = time.monotonic() - started
    memory.remember(step, key, seconds)
    return seconds


def _stdout(step: Step, messages: IO[bytes]) -> contextlib.AbstractContextManager[IO[bytes]]:
    """Where a step's stdout goes: a file that appears whole, or its log."""
    return contextlib.nullcontext(messages) if step.stdout is None else open_output(step.stdout)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"{folder}: cannot be made: {reason}") from None


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process; if we are stopped, it is, and may clean up."""
    try:
        return process.wait()
    except BaseException:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise


@contextlib.contextmanager
def _alone_in(work: Path) -> Iterator[int]:
    """Two runs in one folder would take each other's files for their own."""
    _make_folder(work)
    with (work / ".run.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(f"{work}: another run is working in this folder") from None
        yield lock.fileno()
