"""Inputs of unusual size end within bounded time and memory.

Each command runs in a process of its own, whose peak of memory is read from the system.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")

PROGRAM = r"""
import re, sys
from rejoinder.cli.main import run
code = run(sys.argv[1:])
peak = re.search(r"VmHWM:\s+(\d+) kB", open("/proc/self/status").read())[1]
sys.stderr.write(f"\n{code} {int(peak) // 1024}\n")
"""


def measured(arguments: list[str], seconds: int, megabytes: int) -> int:
    """Run a command within limits and return its exit code."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=10 * seconds,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    code, peak = map(int, done.stderr.splitlines()[-1].split())
    assert code in (0, 2, 3, 4), done.stderr[-2000:]
    assert peak < megabytes, f"{peak} MB"
    # tests run side by side on few cores: only a multiple is a failure
    assert time.monotonic() - started < 4 * seconds
    return code


def written(path: Path, records: Iterator[dict[str, Any]]) -> str:
    with path.open("w") as stream:
        stream.writelines(json.dumps(record) + "\n" for record in records)
    return str(path)


def many_references(count: int) -> Iterator[dict[str, Any]]:
    words = ("the", "cat", "sat", "on", "a", "mat", "and", "ate", "rice")
    references = [
        {"text": " ".join(words[(n // 9**i) % 9] for i in range(5)), "weight": n % 3 - 1}
        for n in range(count)
    ]
    for number in range(2):
        yield {"id": str(number), "context": ["hi"], "response": "a cat", "references": references}


@pytest.mark.parametrize(
    ("metric", "references"),
    [("am(d=bleu)", 5_000), ("ws(d=bleu)", 5_000), ("svr(d=bleu)", 2_000), ("bleu", 50_000)],
)
def test_many_references(metric: str, references: int, tmp_path: Path) -> None:
    items = written(tmp_path / "items.jsonl", many_references(references))
    measured(["score", items, "-m", metric], seconds=60, megabytes=1_500)


def many_systems(systems: int, contexts: int) -> Iterator[dict[str, Any]]:
    for context in range(contexts):
        for system in range(systems):
            yield {
                "id": f"{context}-{system}",
                "context_id": str(context),
                "response": "the cat sat" if (context + system) % 3 else "no",
                "references": ["the cat sat on a mat"],
                "system": f"s{system}",
                "ratings": [(context * system) % 5],
            }


def test_many_systems_in_one_file(tmp_path: Path) -> None:
    items = written(tmp_path / "items.jsonl", many_systems(20_000, 1))
    assert measured(["score", items, "-m", "rouge-l"], seconds=60, megabytes=1_200) == 0


@pytest.mark.parametrize("verb", ["compare", "people", "report"])
def test_a_thousand_systems_are_compared(verb: str, tmp_path: Path) -> None:
    items = written(tmp_path / "items.jsonl", many_systems(1_000, 6))
    scores = written(
        tmp_path / "scores.jsonl",
        (
            {"id": item["id"], "metric": "m", "value": len(item["response"]) / 9}
            for item in many_systems(1_000, 6)
        ),
    )
    arguments = {
        "compare": ["compare", items, scores, "--json"],
        "people": ["compare", items, "--by", "people", "--json"],
        "report": ["report", items, scores, "-o", str(tmp_path / "report.html")],
    }[verb]
    assert measured(arguments, seconds=60, megabytes=1_500) == 0


def test_a_table_of_many_columns(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    names = [f"c{number}" for number in range(50_000)]
    path.write_text(f"reply,{','.join(names)}\nhello{',' * len(names)}\n")
    assert measured(["score", str(path), "-m", "distinct"], seconds=30, megabytes=600) == 0


@pytest.mark.parametrize("name", ["bomb.jsonl", "bomb.csv", "bomb.txt"])
def test_an_endless_device(name: str, tmp_path: Path) -> None:
    (tmp_path / name).symlink_to("/dev/zero")
    for arguments in (
        ["score", str(tmp_path / name), "-m", "bleu"],
        ["corpus", str(tmp_path / name), "--format", "tsv", "-o", str(tmp_path / "p.parquet")],
        ["run", str(tmp_path / name)],
        ["fit", str(tmp_path / name), "--format", "tsv", "-o", str(tmp_path / "evaluator")],
        ["show", str(tmp_path / name)],
    ):
        assert measured(arguments, seconds=30, megabytes=800) in (2, 3)
