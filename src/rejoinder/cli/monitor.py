"""Progress on stderr: a bar on a terminal, an occasional line elsewhere."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rejoinder.cli.terminal import console, say
from rejoinder.progress import Progress
from rejoinder.verbs.monitor import Monitor

if TYPE_CHECKING:
    from rejoinder.learn.progress import TrainingProgress

INTERVAL = 30.0
"""Seconds between two lines in a log file."""
MIN_SECONDS, MIN_SHARE = 5.0, 0.01
"""No time left is shown before so much time has passed and so much of the work is done."""
SMOOTHING = 0.9
"""Weight of the previous estimate, per second, when the time left is estimated again."""


def on_terminal() -> bool:
    """Return whether a bar can be drawn."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


class TimeLeft:
    """Estimate the time left from the share of work done; the estimate changes smoothly.

    The first report is the start of the measurement: what happens before it (loading, compiling) is
    not repeated. There is no estimate until there is a basis for one.
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or time.monotonic
        self._start: tuple[float, float] | None = None
        """Time and share of the first report."""
        self._end: float | None = None
        """The estimated time of the end."""
        self._updated = 0.0

    def estimate(self, share: float | None) -> float | None:
        """Return the seconds left after ``share`` of the work."""
        if not share:
            return None
        now = self._clock()
        if self._start is None:
            self._start = now, share
        began, before = self._start
        passed, done = now - began, share - before
        if passed < MIN_SECONDS or done < MIN_SHARE:
            return None
        end = now + passed / done * (1 - share)
        if self._end is not None:
            old = SMOOTHING ** (now - self._updated)
            end = old * self._end + (1 - old) * end
        self._end, self._updated = end, now
        return max(0.0, end - now)

    def text(self, share: float | None) -> str:
        """Return the estimate in words, empty if there is none."""
        seconds = self.estimate(share)
        return "" if seconds is None else f"{duration(seconds)} left"


class TerminalMonitor(Monitor):
    """Show messages, warnings and progress on stderr."""

    def message(self, text: str) -> None:
        say(text)

    def note(self, text: str) -> None:
        say(text)

    def warn(self, text: str) -> None:
        say(f"warning: {text}")

    @contextlib.contextmanager
    def stream(
        self, what: str, fraction: Callable[[], float | None]
    ) -> Iterator[Callable[[int], None]]:
        left = TimeLeft()
        if not on_terminal():
            lines = _Lines(what)
            yield lambda done: lines.write(f"{done:,} items", left, fraction())
            return
        with _bar(what) as update:

            def advance(done: int) -> None:
                share = fraction()
                update(share, f"{done:,} items", left.text(share))

            yield advance

    @contextlib.contextmanager
    def pieces(self, what: str) -> Iterator[Progress]:
        left = TimeLeft()
        if not on_terminal():
            lines = _Lines(what)
            yield lambda done, total: lines.write(
                f"{done:,} of {total:,}", left, done / max(total, 1)
            )
            return
        with _bar(what) as update:

            def advance(done: int, total: int) -> None:
                share = done / max(total, 1)
                update(share, f"{done:,} of {total:,}", left.text(share))

            yield advance

    @contextlib.contextmanager
    def steps(self) -> Iterator[Callable[[str], None]]:
        if not on_terminal():
            yield lambda what: None
            return
        from rich.text import Text

        with console(stderr=True).status("") as status:
            yield lambda what: status.update(Text(what))

    @contextlib.contextmanager
    def training(self, what: str) -> Iterator[Callable[[TrainingProgress], None]]:
        """Training can take hours, so each validation gets a line, also in a log file."""
        from rejoinder.learn.processes import is_main_process

        if not is_main_process():
            yield lambda progress: None
            return
        say(f"training: {what}")
        left = TimeLeft()
        if not on_terminal():

            def write(progress: TrainingProgress) -> None:
                text = left.text(_share(progress))
                if progress.is_validation:
                    say(_line(progress, text))

            yield write
            return
        # started by the first step: the texts that are read first have a bar of their own
        with contextlib.ExitStack() as stack:
            updates: list[_Update] = []

            def advance(progress: TrainingProgress) -> None:
                if not updates:
                    updates.append(stack.enter_context(_bar(what)))
                text = left.text(_share(progress))
                if progress.is_validation:
                    say(_line(progress, text))
                loss = "" if progress.loss is None else f", loss {progress.loss:.3f}"
                done = f"{progress.step:,} of {progress.total_steps:,} steps{loss}"
                updates[0](_share(progress), done, text)

            yield advance


_Update = Callable[[float | None, str, str], None]


@contextlib.contextmanager
def _bar(what: str) -> Iterator[_Update]:
    """Draw a bar; the callback takes the share, what is done, and the time left."""
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[done]}"),
        TextColumn("{task.fields[left]}"),
    )
    with Bar(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None, done="", left="")

        def update(share: float | None, done: str, left: str) -> None:
            total = None if share is None else 1.0
            bar.update(task, total=total, completed=share or 0.0, done=done, left=left)

        yield update


class _Lines:
    """A line every half minute: short work needs none, and a log stays short."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._last = time.monotonic()

    def write(self, done: str, left: TimeLeft, share: float | None) -> None:
        text = left.text(share)
        now = time.monotonic()
        if now - self._last >= INTERVAL:
            self._last = now
            say(f"{self._what}: {', '.join(part for part in (done, text) if part)}")


def _share(progress: TrainingProgress) -> float:
    return progress.step / max(progress.total_steps, 1)


def _line(progress: TrainingProgress, left: str) -> str:
    parts = [f"step {progress.step:,} of {progress.total_steps:,}"]
    if progress.loss is not None:
        parts.append(f"loss {progress.loss:.3f}")
    if progress.validation_loss is not None:
        best = " (best)" if progress.validation_loss == progress.best_loss else ""
        parts.append(f"validation {progress.validation_loss:.3f}{best}")
    if progress.steps_per_second is not None:
        parts.append(f"{progress.steps_per_second:.2f} steps/s")
    return ", ".join([*parts, *([left] if left else [])])


def duration(seconds: float) -> str:
    """
    >>> [duration(s) for s in (5.2, 75, 3 * 3600 + 125)]
    ['0:05', '1:15', '3:02:05']
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
