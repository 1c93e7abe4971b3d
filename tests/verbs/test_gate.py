"""The pytest fixture, in a test suite of its own."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path

SUITE = """
def test_better(rejoinder_gate):
    rejoinder_gate("items.jsonl", ["rouge-l"], worse_than="off-topic")

def test_worse(rejoinder_gate):
    rejoinder_gate("items.jsonl", by="people", worse_than="careful")

def test_under(rejoinder_gate):
    rejoinder_gate("items.jsonl", under={"rouge-l": 0.2})

def test_no_condition(rejoinder_gate):
    rejoinder_gate("items.jsonl")
"""


def test_the_fixture_fails_tests_of_worse_systems(tmp_path: Path) -> None:
    example = files("rejoinder").joinpath("examples", "replies-en.jsonl")
    (tmp_path / "items.jsonl").write_bytes(example.read_bytes())
    (tmp_path / "test_bot.py").write_text(SUITE)
    installed = any(p.name == "rejoinder" for p in entry_points(group="pytest11"))
    plugin = [] if installed else ["-p", "rejoinder.pytest_plugin"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugin, "-p", "no:cacheprovider", "-q", "test_bot.py"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert "3 failed, 1 passed" in done.stdout, done.stdout
    assert "people: generic is worse than careful by 1.7500" in done.stdout
    assert "rouge-l of off-topic: 0.1173 is below the limit 0.2" in done.stdout
    assert "the gate has no condition" in done.stdout
