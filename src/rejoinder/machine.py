"""What the machine gives this process: its cores, and files that no other process holds."""

from __future__ import annotations

import os
from typing import IO


def cores() -> int:
    """Those that this process may use, which a container may have fewer of than the machine."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def locked(file: IO[bytes]) -> bool:
    """Take the file for this process; the system gives it back, even after a kill."""
    try:
        import fcntl
    except ImportError:  # Windows: no protection
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
