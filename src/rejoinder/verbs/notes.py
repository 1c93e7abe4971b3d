"""Keep what a verb told its monitor in the notes of its result."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.results import Result

if TYPE_CHECKING:
    from rejoinder.learn.progress import TrainingProgress
    from rejoinder.progress import Progress

P = ParamSpec("P")
R = TypeVar("R", bound=Result)


class NoteKeeper(Monitor):
    """Pass everything on to another monitor, and keep notes and warnings."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self.notes: list[str] = []

    def message(self, text: str) -> None:
        self._monitor.message(text)

    def note(self, text: str) -> None:
        self.notes.append(text)
        self._monitor.note(text)

    def warn(self, text: str) -> None:
        self.notes.append(text)
        self._monitor.warn(text)

    def stream(
        self, what: str, fraction: Callable[[], float | None]
    ) -> AbstractContextManager[Callable[[int], None]]:
        return self._monitor.stream(what, fraction)

    def pieces(self, what: str) -> AbstractContextManager[Progress]:
        return self._monitor.pieces(what)

    def steps(self) -> AbstractContextManager[Callable[[str], None]]:
        return self._monitor.steps()

    def training(self, what: str) -> AbstractContextManager[Callable[[TrainingProgress], None]]:
        return self._monitor.training(what)


def keep_notes(verb: Callable[P, R]) -> Callable[P, R]:
    """Decorate a verb, so that ``result.notes`` also has the notes and warnings of its monitor."""

    @wraps(verb)
    def run(*args: P.args, **options: P.kwargs) -> R:
        monitor = options.get("monitor", SILENT)
        if not isinstance(monitor, Monitor):
            return verb(*args, **options)
        keeper = NoteKeeper(monitor)
        options["monitor"] = keeper
        result = verb(*args, **options)
        notes = list(dict.fromkeys([*result.notes, *keeper.notes]))
        object.__setattr__(result, "notes", notes)  # also of a frozen dataclass
        return result

    return run
