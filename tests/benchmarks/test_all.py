"""'make bench' runs all benchmarks, also after a failure, and writes every row to the page.

Real benchmarks take minutes, so the tests use artificial ones that report through table.py.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
PAGE = "# Speed\n\nbefore\n\n<!-- make bench: begin -->\nold\n<!-- make bench: end -->\n\nafter\n"
SCRIPT = """
import sys
from table import show
def rows():
    yield {{"name": "{name} against a peer", "ours_seconds": 2.0, "peer_seconds": {peer},
           "ratio": {peer} / 2, "required": {limit}, "enough": {enough}}}
    {after}
show(rows())
"""


def script(
    folder: Path,
    name: str,
    *,
    peer: float = 8.0,
    limit: float | None = 3.0,
    enough: bool = True,
    after: str = "pass",
) -> None:
    text = SCRIPT.format(name=name, peer=peer, limit=limit, enough=enough, after=after)
    (folder / f"{name}.py").write_text(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("all.py", "table.py"):
        shutil.copy(BENCHMARKS / name, tmp_path)
    (tmp_path / "page.md").write_text(PAGE)
    return tmp_path


def run(folder: Path, *names: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, folder / "all.py", "--page", folder / "page.md", *names]
    env = {k: v for k, v in os.environ.items() if k != "BENCH_JSON"}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env)


def test_rows_of_all_benchmarks_are_collected(folder: Path) -> None:
    script(folder, "fast")
    script(folder, "unlimited", peer=1.0, limit=None)
    done = run(folder)
    assert done.returncode == 0, done.stderr
    # 8 seconds over 2 are a ratio of 4, and 1 over 2 of a half, for which there is no limit
    head, fast, unlimited = done.stdout.splitlines()
    lines = [" ".join(line.split()) for line in (head, fast, unlimited)]
    assert lines == [
        "benchmark what, and against what ratio limit met",
        "fast fast against a peer 4.00 ≥ 3 yes",
        "unlimited unlimited against a peer 0.50",
    ]
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert "[1/2] fast: done" in done.stderr  # how far it is
    page = (folder / "page.md").read_text()
    assert page.startswith("# Speed\n\nbefore\n")
    assert page.endswith("\n\nafter\n")
    assert "old" not in page
    assert "| `fast` | fast against a peer | 4.00 | ≥ 3 | yes |" in page
    assert re.search(r"\d+ cores, .+ GB of memory", page)
    assert "Python 3" in page


def test_failing_benchmark_does_not_stop_the_others(folder: Path) -> None:
    script(folder, "below", peer=5.0)  # 5 / 2 is below 3
    script(folder, "crash", after="1 / 0")
    script(folder, "few", enough=False)
    script(folder, "free", limit=None, enough=False)
    script(folder, "good")
    script(folder, "stop", after="sys.exit(7)")
    done = run(folder)
    assert done.returncode == 1
    assert "failed, or below a limit: below, crash, few, free, stop" in done.stderr
    table = [line for line in (folder / "page.md").read_text().splitlines() if line[:3] == "| `"]
    assert table == [
        "| `below` | below against a peer | 2.50 | ≥ 3 | NO |",
        # what it had reported before it broke off is kept
        "| `crash` | crash against a peer | 4.00 | ≥ 3 | yes |",
        "| `crash` | ended with exit code 1 | – |  | NO |",
        "| `few` | few against a peer | 4.00 | ≥ 3 | NO |",
        "| `free` | free against a peer | 4.00 |  | NO |",
        "| `good` | good against a peer | 4.00 | ≥ 3 | yes |",
        "| `stop` | stop against a peer | 4.00 | ≥ 3 | yes |",
        "| `stop` | ended with exit code 7 | – |  | NO |",
    ]


def test_repeated_benchmark_replaces_only_its_own_rows(folder: Path) -> None:
    script(folder, "one")
    script(folder, "two")
    assert run(folder).returncode == 0
    script(folder, "one", peer=12.0)
    done = run(folder, "one")
    assert done.returncode == 0
    assert "two" not in done.stdout
    page = (folder / "page.md").read_text()
    assert page.count("one against a peer") == 1
    assert "| `one` | one against a peer | 6.00 |" in page
    assert "| `two` | two against a peer | 4.00 |" in page


def test_unknown_name_is_refused(folder: Path) -> None:
    script(folder, "one")
    done = run(folder, "tow")
    assert done.returncode == 2
    assert "unknown: tow; known: one" in done.stderr
    assert (folder / "page.md").read_text() == PAGE


def test_single_benchmark_saves_no_records(folder: Path) -> None:
    script(folder, "slow", peer=2.0)
    done = subprocess.run(
        [sys.executable, folder / "slow.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "a ratio is below its limit" in done.stderr
    assert "slow against a peer" in done.stdout
    assert not (folder / "results.json").exists()


def test_all_benchmarks_report_through_the_table() -> None:
    """All files except all.py and table.py, so that 'make bench' omits none."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        from all import NO_BENCHMARKS, benchmarks
    finally:
        sys.path.remove(str(BENCHMARKS))
    names = benchmarks(BENCHMARKS)
    assert len(names) >= 15
    assert not NO_BENCHMARKS & set(names)
    for name in names:
        text = (BENCHMARKS / f"{name}.py").read_text()
        assert "from table import show" in text, name
        assert "    show(" in text, name
    results = BENCHMARKS / "results.json"
    if results.exists():
        assert set(json.loads(results.read_text())) <= set(names)


IMPORT_ALL = """
import ast, importlib, sys
from pathlib import Path

folder = Path(sys.argv[1])
sys.path.insert(0, str(folder))
for name in sys.argv[2:]:
    importlib.import_module(name)
    # functions import the rest of rejoinder when they run
    for node in ast.walk(ast.parse((folder / f"{name}.py").read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("rejoinder."):
            module = importlib.import_module(node.module)
            for each in node.names:
                if not hasattr(module, each.name):
                    importlib.import_module(f"{node.module}.{each.name}")
    print(name)
"""


def test_all_benchmarks_find_what_they_import() -> None:
    """They also import helpers of the tests and peers; a process of its own has no path of pytest
    that could hide a wrong one."""
    names = sorted({path.stem for path in BENCHMARKS.glob("*.py")})
    command = [sys.executable, "-c", IMPORT_ALL, str(BENCHMARKS), *names]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == names
