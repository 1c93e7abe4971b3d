"""How a verb shows that it is alive: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator

from rejoinder.cli.common import console, say
from rejoinder.progress import Progress

QUIET = 30.0
"""Seconds between two lines in a log file."""


def on_terminal() -> bool:
    """Can a bar be drawn?"""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


@contextlib.contextmanager
def progress(what: str, fraction: Callable[[], float | None]) -> Iterator[Callable[[int], None]]:
    """For items that come from a stream; call the result with the number of items done."""
    if not on_terminal():
        lines = Lines(what)
        yield lambda done: lines.tell(f"{done:,} items", fraction())
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[done]:>10,} items"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task(what, total=None, done=0)

        def advance(done: int) -> None:
            share = fraction()
            bar.update(
                task,
                total=None if share is None else 1.0,
                completed=share or 0.0,
                done=done,
            )

        yield advance


@contextlib.contextmanager
def pieces_progress(what: str) -> Iterator[Progress]:
    """For work that comes in a known number of pieces."""
    if not on_terminal():
        lines = Lines(what)
        yield lambda done, total: lines.tell(f"{done:,} of {total:,}", done / max(total, 1))
        return
    from rich.progress import Progress as Bar

    with Bar(console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextlib.contextmanager
def steps_progress() -> Iterator[Callable[[str], None]]:
    """On a terminal, what is being done at the moment; call the result with each next thing."""
    if not on_terminal():
        yield lambda what: None
        return
    from rich.text import Text

    with console(stderr=True).status("") as status:
        yield lambda what: status.update(Text(what))


class Lines:
    """A line each half minute: what is over sooner needs none, and a log stays short."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._began = self._last = time.monotonic()

    def tell(self, done: str, share: float | None) -> None:
        now = time.monotonic()
        if now - self._last < QUIET:
            return
        self._last = now
        left = f", {duration((now - self._began) * (1 / share - 1))} left" if share else ""
        say(f"{self._what}: {done}{left}")


def duration(seconds: float) -> str:
    """
    >>> [duration(s) for s in (5.2, 75, 3 * 3600 + 125)]
    ['0:05', '1:15', '3:02:05']
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
