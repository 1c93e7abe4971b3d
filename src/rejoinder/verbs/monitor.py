"""How a verb reports messages and progress to its caller.

The functions of the package print nothing. They call a monitor: the one here raises Python
warnings and ignores progress, that of the command line draws bars and writes to stderr.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import rejoinder
from rejoinder.progress import Progress

if TYPE_CHECKING:
    from rejoinder.learn.progress import TrainingProgress


class RejoinderWarning(UserWarning):
    """Something that does not stop a verb, but changes what its numbers are worth."""


class Monitor:
    """Turn warnings into Python warnings and ignore everything else."""

    def message(self, text: str) -> None:
        """Receive a fact that needs no attention, such as that no context was seen before."""

    def note(self, text: str) -> None:
        """Receive what was guessed, ignored or replaced, such as which columns were recognised."""
        self.warn(text)

    def warn(self, text: str) -> None:
        """Receive a warning."""
        warnings.warn(text, RejoinderWarning, stacklevel=_stacklevel())

    def stream(
        self, what: str, fraction: Callable[[], float | None]
    ) -> AbstractContextManager[Callable[[int], None]]:
        """Follow items of a stream: the callback takes the number of items done."""
        return nullcontext(lambda done: None)

    def pieces(self, what: str) -> AbstractContextManager[Progress]:
        """Follow work that can be counted: the callback takes the number done and the total."""
        return nullcontext(lambda done, total: None)

    def steps(self) -> AbstractContextManager[Callable[[str], None]]:
        """Follow named steps: the callback takes the name of the step that begins."""
        return nullcontext(lambda what: None)

    def training(self, what: str) -> AbstractContextManager[Callable[[TrainingProgress], None]]:
        """Follow the training of a network."""
        return nullcontext(lambda progress: None)


def _stacklevel() -> int:
    """Return the ``stacklevel`` with which a warning of :meth:`Monitor.warn` shows the caller's
    line: the first one that is not in this package."""
    inside = (os.path.dirname(rejoinder.__file__) + os.sep, contextlib.__file__)
    level, frame = 1, inspect.currentframe()
    frame = None if frame is None else frame.f_back
    while frame is not None and frame.f_code.co_filename.startswith(inside):
        level, frame = level + 1, frame.f_back
    return level


SILENT = Monitor()
"""The monitor of Python callers."""
