"""The processes that ``torchrun`` has started, from its environment variables (without torch)."""

from __future__ import annotations

import os

from rejoinder.errors import UsageError


class NotMainProcess(UsageError):
    """This process of ``torchrun`` only helped to train: the main process has the result."""


def world_size() -> int:
    """Return how many processes train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_main_process() -> bool:
    """Return whether this process reports and writes files (rank 0)."""
    return world_size() == 1 or os.environ.get("RANK", "0") == "0"
