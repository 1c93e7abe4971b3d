"""The tests on the page 'Gates in CI' run with the fixture, and fail when the bot is worse."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from docs.blocks import DOCS, blocks
from docs.sandbox import fill


def run_tests(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_bot.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_pytest_examples(tmp_path: Path) -> None:
    fill(tmp_path)
    # the entry point provides the fixture; an environment installed before it does not have it
    (tmp_path / "conftest.py").write_text("from rejoinder.pytest_plugin import rejoinder_gate\n")
    (code,) = (block.text for block in blocks(DOCS / "gates.md") if block.language == "python")
    (tmp_path / "test_bot.py").write_text(code)
    done = run_tests(tmp_path)
    assert done.returncode == 0, done.stdout
    (tmp_path / "test_bot.py").write_text(code.replace('"production"', '"candidate"'))
    worse = run_tests(tmp_path)
    assert worse.returncode == 1, worse.stdout
    assert "production is worse than candidate" in worse.stdout
