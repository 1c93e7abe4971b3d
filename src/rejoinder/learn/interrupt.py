"""Defer SIGINT, SIGTERM and SIGHUP to the end of a training step, so that it can be saved.

While ``DeferredSignals`` is open, the first such signal is only recorded; the training loop checks
for it between steps, saves, and passes it on to the previous handler. A second signal is delivered
at once. Outside the main thread, where Python cannot handle signals, nothing is changed.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

DEFERRED = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class DeferredSignals:
    """Records the first signal: ``number``, or None."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> DeferredSignals:
        if threading.current_thread() is threading.main_thread():
            for number in DEFERRED:
                previous = signal.getsignal(number)
                # nohup ignores SIGHUP on purpose; a handler not set from Python can't be restored
                if previous is not signal.SIG_IGN and previous is not None:
                    self._previous[number] = signal.signal(number, self._record)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def deliver(self) -> None:
        """Raise the recorded signal again; if it does not end the program, stop the training."""
        self._restore()
        signal.raise_signal(self.number if self.number is not None else signal.SIGTERM)
        raise KeyboardInterrupt

    def _record(self, number: int, frame: FrameType | None) -> None:
        if self.number is not None:
            self._restore()
            signal.raise_signal(number)
        self.number = number

    def _restore(self) -> None:
        for number, previous in self._previous.items():
            signal.signal(number, previous)
        self._previous.clear()
