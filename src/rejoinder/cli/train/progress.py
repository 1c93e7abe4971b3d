"""How a training shows where it is: a bar on a terminal, and a line at each validation."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rejoinder.cli.common import console, say
from rejoinder.cli.progress import duration, on_terminal

if TYPE_CHECKING:
    from rejoinder.learn.progress import Progress


@contextlib.contextmanager
def training_progress(what: str) -> Iterator[Callable[[Progress], None]]:
    """Training can take hours: also in a log file, a validation is worth a line."""
    if not on_terminal():
        yield lambda progress: say(_line(progress)) if progress.new_validation else None
        return
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[now]}"),
    )
    bar = Bar(*columns, console=console(stderr=True), transient=True)
    task = bar.add_task(what, total=None, now="")

    def show(progress: Progress) -> None:
        bar.start()  # not before: the texts that are read first have a bar of their own
        if progress.new_validation:
            bar.console.print(_line(progress), soft_wrap=True)
        loss = "" if progress.loss is None else f"loss {progress.loss:.3f}, "
        now = f"{progress.step:,} of {progress.total:,} steps, {loss}{_pace(progress)}"
        bar.update(task, completed=progress.step, total=progress.total, now=now)

    try:
        yield show
    finally:
        bar.stop()


def _line(progress: Progress) -> str:
    parts = [f"step {progress.step:,} of {progress.total:,}"]
    if progress.loss is not None:
        parts.append(f"loss {progress.loss:.3f}")
    if progress.validation is not None:
        best = " (best)" if progress.validation == progress.best else ""
        parts.append(f"validation {progress.validation:.3f}{best}")
    if pace := _pace(progress):
        parts.append(pace)
    return ", ".join(parts)


def _pace(progress: Progress) -> str:
    if progress.speed is None or progress.left is None:
        return ""
    return f"{progress.speed:.2f} steps/s, {duration(progress.left)} left"
