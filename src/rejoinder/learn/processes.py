"""Who else trains: what ``torchrun`` tells its processes, known before torch is loaded."""

from __future__ import annotations

import os


def team_size() -> int:
    """How many processes train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_first() -> bool:
    """Whether this process is the one that reports and writes."""
    return team_size() == 1 or os.environ.get("RANK", "0") == "0"
