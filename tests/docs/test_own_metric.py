"""The metric on the page 'Your own metric' works as a class and as an entry point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from docs.blocks import DOCS, ROOT, blocks
from support import COMMAND

ITEMS = ROOT / "src" / "rejoinder" / "examples" / "replies-en.jsonl"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Create what pip would install for the package on the page."""
    code, _ = (block.text for block in blocks(DOCS / "own-metric.md") if block.language == "python")
    (settings,) = (b.text for b in blocks(DOCS / "own-metric.md") if b.language == "toml")
    project = tomllib.loads(settings)["project"]
    (module,) = tomllib.loads(settings)["tool"]["setuptools"]["py-modules"]
    (tmp_path / f"{module}.py").write_text(code)
    info = tmp_path / "my_metrics-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    points = [
        line
        for group, names in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {place}" for name, place in names.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(points))
    (tmp_path / "items.jsonl").write_bytes(ITEMS.read_bytes())
    return tmp_path


def start(folder: Path, *command: str) -> str:
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_commands_of_the_page(installed: Path) -> None:
    shell = [b for b in blocks(DOCS / "own-metric.md") if b.language == "sh" and not b.reason]
    lines = [words for block in shell for words in block.commands()]
    assert len(lines) == 6
    # one process for all command lines
    script = (
        "import json, sys\nfrom rejoinder.cli.main import run\n"
        "for words in json.loads(sys.argv[1]):\n    assert run(words[1:]) == 0, words\n"
        "    if 'length-match(power=2.0,refs=mean)' in words:\n"
        "        open('kept.jsonl', 'w').write(open('scores.jsonl').read())\n"
    )
    output = start(installed, sys.executable, "-c", script, json.dumps(lines))
    assert "score = min(|h|, |r|) / max(|h|, |r|)" in output  # 'explain' shows the docstring
    rows = [json.loads(line) for line in (installed / "kept.jsonl").read_text().splitlines()]
    values = {(row["id"], row["metric"]): row["value"] for row in rows}
    # "That's nice ." has 3 tokens, "Nice ! Which colour did you go for ?" 9, and "That's a big
    # job . I bet it feels like a new room ." 14; the third reference is a bad one
    assert values["en-01:generic", "length-match"] == pytest.approx(3 / 9)
    squared = "length-match(power=2.0,refs=mean)"
    assert values["en-01:generic", squared] == pytest.approx(((3 / 9) ** 2 + (3 / 14) ** 2) / 2)


def test_metric_without_references(installed: Path) -> None:
    """Of the 10 words of the careful reply, only "the" occurs in the context."""
    (installed / "my_metrics-1.0.dist-info" / "entry_points.txt").unlink()
    (command,) = (
        words
        for block in blocks(DOCS / "own-metric.md")
        if block.language == "sh"
        for words in block.commands()
        if "--plugin" in words
    )
    start(installed, *COMMAND, *command[1:])
    rows = [json.loads(line) for line in (installed / "scores.jsonl").read_text().splitlines()]
    values = {(row["id"], row["metric"]): row["value"] for row in rows}
    assert values["en-01:careful", "on-topic"] == pytest.approx(1 / 10)


def test_in_a_notebook(installed: Path) -> None:
    """'Yes , I do .' has 5 tokens, 'Yes , I really do .' 6."""
    _, notebook = (
        block.text for block in blocks(DOCS / "own-metric.md") if block.language == "python"
    )
    (installed / "my_metrics-1.0.dist-info" / "entry_points.txt").unlink()
    assert float(start(installed, sys.executable, "-c", notebook)) == pytest.approx(5 / 6)


def test_plugin_is_listed(installed: Path) -> None:
    listed = json.loads(start(installed, *COMMAND, "ls", "--json"))
    (found,) = (row for row in listed["metrics"] if row["name"] == "length-match")
    assert found["parameters"]["power"] == "1.0"
