"""A server does its matrix products in one thread, and starts without what it does not need."""

from __future__ import annotations

import os
import subprocess
import sys

from rejoinder.machine import cores

PROGRAM = """
import sys
import rejoinder.cli.annotate
from rejoinder.machine import use_one_thread
assert "numpy" not in sys.modules, "too late"
use_one_thread()
import numpy
from threadpoolctl import threadpool_info
print({each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"})
"""


def threads(**variables: str) -> str:
    unset = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.strip()


def test_one_thread() -> None:
    assert threads() == "{1}"
    assert threads(OMP_NUM_THREADS="2") == str({min(2, cores())})


def test_what_a_server_does_not_import() -> None:
    """They take longer to import than all the rest, and 40 MB."""
    code = "import sys, rejoinder.annotate.web.app, rejoinder.annotate.tasks.rate\n"
    code += "print([name for name in ('scipy.stats', 'pandas', 'numba') if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
