"""Number of processor cores that this process may use."""

from __future__ import annotations

import os


def cores() -> int:
    """Return the number of cores of this process, which a container may limit."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1
