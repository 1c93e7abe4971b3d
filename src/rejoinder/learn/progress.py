"""What a run tells while it is under way: loss, speed, time left."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass

LATEST = 20
"""The loss shown is the mean over so many steps: single ones jump."""


@dataclass(frozen=True)
class Progress:
    step: int
    total: int
    epoch: int
    loss: float | None
    """Of the last steps."""
    validation: float | None
    """Of the last validation."""
    best: float | None
    new_validation: bool
    """This report is about a validation, not about a step."""
    rate: float
    speed: float | None
    """Steps a second since this process began, validations included."""
    left: float | None
    """Seconds, if it goes on like this to the last step."""


class Clock:
    """Measures speed; steps made before a kill do not count."""

    def __init__(self, step: int, total: int) -> None:
        self._began, self._start, self._total = time.monotonic(), step, total
        self._losses: deque[float] = deque(maxlen=LATEST)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def add(self, loss: float) -> None:
        self._losses.append(loss)

    @property
    def loss(self) -> float | None:
        return sum(self._losses) / len(self._losses) if self._losses else None

    def speed(self, step: int) -> float | None:
        return (step - self._start) / self.seconds if step > self._start else None

    def left(self, step: int) -> float | None:
        speed = self.speed(step)
        return None if speed is None else (self._total - step) / speed
