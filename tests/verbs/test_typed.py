"""Type hints that a user's checker can rely on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import rejoinder

ROOT = Path(__file__).resolve().parents[2]

GOOD = """
import polars as pl

import rejoinder
from rejoinder.errors import RejoinderError


def reward(folder: str, contexts: list[list[str]], replies: list[str]) -> float:
    evaluator = rejoinder.Evaluator.load(folder)
    found = evaluator.score(contexts, replies, metrics=["rejoinder", "vbleu"])
    more: rejoinder.Items = evaluator.expand([{"id": "1", "response": "x"}], k=3)
    return float(found["rejoinder"].values.mean()) + len(more)


def study(path: str) -> None:
    items = rejoinder.load(path)
    frame = pl.DataFrame({"id": ["1"], "response": ["x"]})
    try:
        result: rejoinder.ScoreResult = rejoinder.score(items, ["rouge-l"])
        rejoinder.score(frame, "rouge-l").frame(to="pandas")
    except RejoinderError as error:
        print(error)
    low = result["rouge-l"].mean["hal"]
    if low is not None:
        print(low.value + 1)
    for ranking in rejoinder.compare(items, "rouge-l"):
        print([each.system.upper() for each in ranking.systems])
    found = rejoinder.meta(items, "rouge-l", level="system")
    print(found.results[0].correlations.spearman.value)
    made = rejoinder.fit("pairs.parquet", preset="tiny", output="evaluator", seed=1)
    reveal_type(made)
"""

BAD = """
import rejoinder

rejoinder.score(3.5, "rouge-l")
rejoinder.meta([], "rouge-l", level="word")
rejoinder.Evaluator.load("e").score([["a"]], [1])
rejoinder.fit("pairs.parquet")
"""


def check(path: Path, code: str) -> str:
    path.write_text(code)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml"]
    done = subprocess.run(
        # what 'make types' has found out is known already
        [*command, "--follow-imports", "silent", str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def test_a_small_program_of_a_user(tmp_path: Path) -> None:
    assert (Path(rejoinder.__file__).parent / "py.typed").is_file()
    both = check(tmp_path / "good.py", GOOD)
    assert 'Revealed type is "rejoinder.verbs.evaluator.Evaluator"' in both
    assert ": error:" not in both, both
    found = check(tmp_path / "bad.py", BAD)
    lines = [line.split(":")[1] for line in found.splitlines() if ": error:" in line]
    assert lines == ["4", "5", "6", "7"], found
