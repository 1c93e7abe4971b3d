"""What all tests share: the folder of real data, and a browser.

Under CI the data must be there. Elsewhere, tests that need it are skipped with the reason, so
that somebody without the data can still work on the project.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from browser import browser

__all__ = ["browser"]

# the first example of a test may wait for a kernel to be compiled, and machines are noisy
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

# Read when torch is loaded, here and in programs under test. Several processes test at once, so
# each has one thread: more would wait for one another, and sums of another number of threads have
# other last bits.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

ROOT = Path(__file__).resolve().parent.parent


DATA = Path(os.environ.get("REJOINDER_DATA") or ROOT.parent / "shared" / "data")

if DATA.is_dir():
    # programs under test find the data as a user's would
    os.environ["REJOINDER_DATA"] = str(DATA)


if "REJOINDER_CACHE" not in os.environ:
    # vectors of texts are shared by all test processes, and gone with the first of them
    _cache = tempfile.TemporaryDirectory(prefix="rejoinder-cache-")
    os.environ["REJOINDER_CACHE"] = _cache.name


@pytest.fixture(scope="session")
def data() -> Path:
    if not DATA.is_dir():
        message = f"real data not found in {DATA}: set REJOINDER_DATA"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return DATA
