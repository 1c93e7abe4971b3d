"""A polite kill waits for the end of the step: half a step can't be gone on from.

While ``Interruption`` is open, the first SIGINT, SIGTERM or SIGHUP is only noted; the loop looks
at it between steps, saves, and hands it on to whoever would have got it. A second one does not
wait. Outside the main thread, where signals can't be caught, nothing is changed.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

POLITE = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class Interruption:
    """``number`` is the signal that came, or None."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            for number in POLITE:
                before = signal.getsignal(number)
                # nohup wants to live on; a handler that is not Python's can't be put back
                if before is not signal.SIG_IGN and before is not None:
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._put_back()

    def deliver(self) -> None:
        """Hand the signal on; if that does not end the program, this ends the training."""
        self._put_back()
        signal.raise_signal(self.number if self.number is not None else signal.SIGTERM)
        raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.number is not None:
            self._put_back()
            signal.raise_signal(number)
        self.number = number

    def _put_back(self) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before.clear()
