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


def use_one_thread() -> None:
    """Let numpy use one thread for matrix products; must be called before it is imported.

    For a process that serves many people at once: products of small matrices take a hundred times
    as long if several threads wait for each other on busy cores. A number in the environment stays.
    """
    if not {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"} & set(os.environ):
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
