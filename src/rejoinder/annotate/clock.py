"""The time of a server, which never goes back and never jumps."""

from __future__ import annotations

import time


class Clock:
    """Seconds since 1970 that run on evenly, even if somebody sets the clock of the machine.

    ``latest`` is the latest time in the database: if the machine's clock was set back between two
    runs, time continues from there. ``speed`` lets the time of a rehearsal run faster.
    """

    def __init__(self, latest: float = 0.0, speed: float = 1.0) -> None:
        self._start, self._speed = max(time.time(), latest), speed
        self._monotonic = time.monotonic()

    def now(self) -> float:
        return self._start + self._speed * (time.monotonic() - self._monotonic)
