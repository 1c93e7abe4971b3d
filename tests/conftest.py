"""Fixtures that all tests share: the folder of real data, and a browser.

Tests that need data which is not in the repository are skipped without it, and the summary counts
them. Under CI=true they fail if the data was promised, that is, if REJOINDER_DATA is set.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

from browser import browser

__all__ = ["browser"]

# No deadline: the first example of a test may wait for a kernel to be compiled.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

# Torch reads these when it is imported, here and in programs under test. Several test processes run
# in parallel, so each gets one thread; another number of threads would also change the last bits of
# sums.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

ROOT = Path(__file__).resolve().parent.parent

NO_DATA = "real data not found"
DATA = Path(os.environ.get("REJOINDER_DATA") or ROOT.parent / "shared" / "data")

if DATA.is_dir():
    # for programs that tests start
    os.environ["REJOINDER_DATA"] = str(DATA)


if "REJOINDER_CACHE" not in os.environ:
    # one cache for all test processes, deleted at the end
    _cache = tempfile.TemporaryDirectory(prefix="rejoinder-cache-")
    os.environ["REJOINDER_CACHE"] = _cache.name


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of public corpora and rated replies."""
    if not DATA.is_dir():
        message = f"{NO_DATA} in {DATA}: set REJOINDER_DATA"
        if os.environ.get("CI") == "true" and os.environ.get("REJOINDER_DATA"):
            pytest.fail(message)
        pytest.skip(message)
    return DATA


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter,
) -> Generator[None, None, None]:
    """Count the tests that were skipped for want of data, below pytest's own summary."""
    yield
    skipped = sum(
        NO_DATA in str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])
    )
    if skipped:
        terminalreporter.write_line(
            f"{skipped} tests skipped: they need data that is not in the repository"
            " (set REJOINDER_DATA to its folder)"
        )
