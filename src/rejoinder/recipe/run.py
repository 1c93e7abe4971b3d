"""Run the steps of a recipe one after the other, each in a process of its own.

A process frees its memory (a pool, a network, compiled kernels) before the next step starts, no
library state leaks from one step into the next, and a step that the system kills for want of
memory can be named. The price is about a second a step for starting Python.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from rejoinder.errors import RejoinderError, UsageError
from rejoinder.files.output import only_run, open_output, unwritable
from rejoinder.files.paths import exists
from rejoinder.recipe.file import Recipe, Step
from rejoinder.recipe.state import RunState

PROGRAM = (sys.executable, "-c", "from rejoinder.cli.main import main; main()")
INTERVAL = 30.0
"""Seconds between two reports on a step that is running."""
PATIENCE = 20
"""Seconds that an interrupted step has to clean up."""
LOCK = ".run.lock"
RUNNING = "REJOINDER_RUNNING_RECIPES"
"""Environment variable of a step: the recipes that wait for it, so that none runs itself."""


@dataclass(frozen=True)
class Outcome:
    """The state of a step, done or skipped, and the time that it took."""

    name: str
    state: Literal["done", "skipped"]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "state": self.state, "seconds": round(self.seconds, 3)}


class StepFailed(RejoinderError):
    """A step failed; the run ends with the step's exit code."""

    def __init__(self, step: Step, message: str, exit_code: int, log: Path) -> None:
        self.exit_code, self.log = exit_code, log
        super().__init__(f"step '{step.name}' {message}")


Wait = Callable[[Step, float, Path], None]
"""Called with a step that is running, the seconds since its start, and the file of its messages."""
Start = Callable[[Step, int], None]
Finish = Callable[[Outcome, int], None]


def run_recipe(
    recipe: Recipe,
    work: Path,
    *,
    on_start: Start,
    on_finish: Finish,
    on_wait: Wait = lambda step, seconds, log: None,
    show_messages: bool = False,
) -> list[Outcome]:
    """Run the steps that are not done yet, in the folder ``work``.

    The output of a step goes to ``work/logs``; with ``show_messages``, its messages and progress go
    to our stderr, otherwise ``on_wait`` is called every half minute.
    """
    if show_messages:
        on_wait = _ignore
    running = os.environ.get(RUNNING, "").split(os.pathsep)
    if os.path.realpath(recipe.path) in running:
        raise UsageError(f"{recipe.path}: the recipe runs itself, which would never end")
    with only_run(work, LOCK) as lock:
        state = RunState(work)
        outcomes = []
        for number, step in enumerate(recipe.steps, 1):
            if state.is_done(step):
                outcome = Outcome(step.name, "skipped", 0.0)
            else:
                on_start(step, number)
                seconds = _run_step(step, recipe, state, work, show_messages, lock, on_wait)
                outcome = Outcome(step.name, "done", seconds)
            on_finish(outcome, number)
            outcomes.append(outcome)
        return outcomes


def pending(recipe: Recipe, work: Path) -> list[bool]:
    """Return for each step whether a run would do it, as far as that can be told in advance."""
    state = RunState(work)
    changed: set[str] = set()
    todo = []
    for step in recipe.steps:
        is_pending = bool(changed & set(step.inputs)) or not state.is_done(step)
        if is_pending:
            changed |= set(step.outputs)
        todo.append(is_pending)
    return todo


def _run_step(
    step: Step,
    recipe: Recipe,
    state: RunState,
    work: Path,
    show_messages: bool,
    lock: IO[bytes],
    on_wait: Wait,
) -> float:
    log = work / "logs" / f"{step.name}.txt"
    missing = [path for path in step.inputs if not exists(path)]
    if missing:
        raise StepFailed(step, f"needs {', '.join(missing)}, which does not exist", 3, log)
    key = state.key(step)
    state.forget(step)
    for path in [*step.outputs, str(log)]:
        _make_folder(Path(path).parent)
    started = time.monotonic()
    with _open_log(log) as messages, _stdout(step, messages) as out:
        process = subprocess.Popen(
            [*PROGRAM, *step.arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=None if show_messages else messages,
            env=_environment(recipe),
            **_keep_lock(lock),
        )
        code = _wait(process, lambda: on_wait(step, time.monotonic() - started, log))
        if code:
            how = f"was killed by signal {-code}" if code < 0 else f"failed with exit code {code}"
            raise StepFailed(step, how, 128 - code if code < 0 else code, log)
    absent = [path for path in step.outputs if not exists(path)]
    if absent:
        raise StepFailed(step, f"did not write {', '.join(absent)}", 3, log)
    seconds = time.monotonic() - started
    state.remember(step, key, seconds)
    return seconds


def _environment(recipe: Recipe) -> dict[str, str]:
    running = [os.environ.get(RUNNING, ""), os.path.realpath(recipe.path)]
    return {**os.environ, RUNNING: os.pathsep.join(filter(None, running))}


def _keep_lock(lock: IO[bytes]) -> dict[str, Any]:
    """Let the step inherit the lock: if the run is killed at once, the folder stays locked until
    the step has ended, too. Windows has no such inheritance."""
    return {} if sys.platform == "win32" else {"pass_fds": [lock.fileno()]}


def _open_log(path: Path) -> IO[bytes]:
    try:
        return path.open("wb")
    except OSError as error:
        raise unwritable(path, error) from None


def _stdout(step: Step, messages: IO[bytes]) -> contextlib.AbstractContextManager[IO[bytes]]:
    """Open what a step's stdout goes to: an output that appears whole, or its log."""
    return contextlib.nullcontext(messages) if step.stdout is None else open_output(step.stdout)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from None


def _ignore(step: Step, seconds: float, log: Path) -> None:
    """Report nothing: the messages of the step are shown."""


def _wait(process: subprocess.Popen[bytes], on_wait: Callable[[], None]) -> int:
    """Wait for a process; if this process is stopped, stop it and let it clean up."""
    try:
        while True:
            try:
                return process.wait(INTERVAL)
            except subprocess.TimeoutExpired:
                on_wait()
    except BaseException:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise
