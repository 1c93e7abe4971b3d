"""``--plugin FILE``: a file that cannot be loaded ends with one line that names it."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from rejoinder.errors import UsageError
from rejoinder.verbs.plugin import load_plugin
from support import COMMAND, Run

METRIC = """
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from rejoinder.metrics.metric import ItemMetric

@dataclass(frozen=True, kw_only=True)
class Mine(ItemMetric):
    name: ClassVar[str] = {name}
    summary: ClassVar[str] = "mine"

    def stats(self, batch):
        return np.ones(({rows}, 2))
"""
LEAVING = METRIC.replace("return", "import sys; sys.exit(0); return")
SLEEPING = METRIC.replace("return", "import time; print('now', flush=True); time.sleep(60); return")


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("p.py", "import sys; sys.exit(0)", "SystemExit: 0"),
        ("p.py", "raise SystemExit", "SystemExit"),
        ("p.py", "raise BaseException('no')", "BaseException: no"),
        ("p.so", "text", "ImportError: "),
        ("p.py", METRIC.format(name="5", rows=1), "Mine has the name 5; expected letters"),
        ("p.py", METRIC.format(name="'a(b'", rows=1), "Mine has the name 'a(b'; expected letters"),
        ("p.py", METRIC.format(name="[]", rows=1), "Mine has the name []; expected letters"),
    ],
)
def test_a_plugin_that_cannot_be_loaded_is_named(
    tmp_path: Path, file: str, text: str, message: str
) -> None:
    path = tmp_path / file
    path.write_text(text)
    with pytest.raises(UsageError) as error:
        load_plugin(path)
    assert str(error.value).startswith(f"plugin {path}: {message}")


def test_a_plugin_that_exits_or_fails_ends_with_2(run: Run, tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_text('{"id": "1", "response": "a", "references": ["b"]}\n')
    (tmp_path / "leaves.py").write_text("import sys; sys.exit(0)")
    (tmp_path / "wrong.py").write_text(METRIC.format(name="'mine'", rows=3))
    (tmp_path / "stats.py").write_text(LEAVING.format(name="'mine'", rows=1))
    for file, message in [
        ("leaves.py", "plugin leaves.py: SystemExit: 0"),
        ("stats.py", "mine raised SystemExit: 0"),
        ("wrong.py", "mine: stats returned 3 rows for 1 items; expected [1, d] numbers"),
    ]:
        done = run("score", "items.jsonl", "-m", "mine", "--plugin", file)
        assert done.returncode == 2
        assert done.stderr.decode() == f"rejoinder: {message}\n"
        assert done.stdout == b""


def test_a_signal_in_a_plugin_ends_the_process(tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_text('{"id": "1", "response": "a", "references": ["b"]}\n')
    (tmp_path / "sleeps.py").write_text(SLEEPING.format(name="'mine'", rows=1))
    process = subprocess.Popen(
        [*COMMAND, "score", "items.jsonl", "-m", "mine", "--plugin", "sleeps.py", "-o", "s.jsonl"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"now\n"
    process.terminate()
    _, messages = process.communicate(timeout=60)
    assert (process.returncode, messages) == (128 + signal.SIGTERM, b"")
    assert not (tmp_path / "s.jsonl").exists()
