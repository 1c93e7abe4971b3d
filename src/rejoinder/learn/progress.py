"""Progress of a training run: loss, speed, time left."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass

WINDOW = 20
"""The reported loss is the mean over this many steps."""


@dataclass(frozen=True)
class TrainingProgress:
    """The state of a run after a step or a validation."""

    step: int
    total_steps: int
    epoch: int
    loss: float | None
    """Mean training loss of the last steps."""
    validation_loss: float | None
    """Loss of the last validation."""
    best_loss: float | None
    is_validation: bool
    """Whether this report follows a validation, not a step."""
    learning_rate: float
    steps_per_second: float | None
    """Since this process started, validations included."""
    seconds_left: float | None
    """Until the last step, at this speed."""


class SpeedMeter:
    """Measures the speed of this process; steps made before an interruption do not count."""

    def __init__(self, step: int, total_steps: int) -> None:
        self._began, self._first_step, self._total_steps = time.monotonic(), step, total_steps
        self._losses: deque[float] = deque(maxlen=WINDOW)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def add(self, loss: float) -> None:
        self._losses.append(loss)

    @property
    def loss(self) -> float | None:
        return sum(self._losses) / len(self._losses) if self._losses else None

    def steps_per_second(self, step: int) -> float | None:
        return (step - self._first_step) / self.seconds if step > self._first_step else None

    def seconds_left(self, step: int) -> float | None:
        speed = self.steps_per_second(step)
        return None if speed is None else (self._total_steps - step) / speed
