"""Numbers of processor cores and threads that this process may use."""

from __future__ import annotations

import os


def cores() -> int:
    """Return the number of cores of this process, which a container may limit."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def num_threads() -> int:
    """Return the number of threads that numpy uses for matrix products.

    ``OPENBLAS_NUM_THREADS`` or ``OMP_NUM_THREADS``, else one per core.
    """
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "").partition(",")[0]
        if value.isdecimal() and int(value) > 0:
            return int(value)
    return cores()
