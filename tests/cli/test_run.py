"""``rejoinder run`` as a user starts it, on the example replies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support import Run

RECIPE = """
[variables]
order = 1

[[lists.rows]]
row = "bleu"
label = "by words"
metric = "bleu(n=${order})"

[[lists.rows]]
row = "chrf"
label = "by letters"
metric = "chrf"

[[steps]]
name = "score-${row}"
each = "rows"
run = ["score", "items.jsonl", "-m", "${metric}", "--resamples", 100,
       "-o", "${work}/${row}.jsonl"]
inputs = ["items.jsonl"]
outputs = ["${work}/${row}.jsonl"]

[[steps]]
name = "meta-${row}"
each = "rows"
run = ["meta", "items.jsonl", "${work}/${row}.jsonl", "--json", "--resamples", 100]
inputs = ["items.jsonl"]
stdout = "${work}/${row}.json"

[table]
title = "Agreement"
each = "rows"
row = "${label}"
from = "${work}/${row}.json"
output = "${work}/table.json"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    from importlib.resources import files

    example = files("rejoinder").joinpath("examples", "replies-en.jsonl")
    (tmp_path / "items.jsonl").write_bytes(example.read_bytes())
    (tmp_path / "r.toml").write_text(RECIPE)
    return tmp_path


def test_a_recipe_from_items_to_a_table(run: Run, folder: Path) -> None:
    planned = run("run", "r.toml", "--dry-run")
    assert planned.returncode == 0, planned.stderr
    lines = planned.stdout.decode().splitlines()
    assert lines[0] == "# 1/4 score-bleu"
    assert lines[1] == (
        "rejoinder score items.jsonl -m 'bleu(n=1)' --resamples 100 -o r-run/bleu.jsonl"
    )
    assert lines[5].endswith("--json --resamples 100 > r-run/bleu.json")
    assert not (folder / "r-run").exists()

    done = run("run", "r.toml")
    assert done.returncode == 0, done.stderr
    messages = done.stderr.decode().splitlines()
    assert [line.split(" … ")[0] for line in messages] == [
        "1/4 score-bleu",
        "2/4 score-chrf",
        "3/4 meta-bleu",
        "4/4 meta-chrf",
    ]
    table = done.stdout.decode()
    assert "Agreement: bleu(n=1)" in table
    assert "by letters" in table
    assert max(map(len, table.splitlines())) <= 80
    written = json.loads((folder / "r-run" / "table.json").read_text())
    alone = run("meta", "items.jsonl", "r-run/bleu.jsonl", "--json", "--resamples", "100")
    (expected,) = json.loads(alone.stdout)["results"]
    assert written["results"][0] == {"row": "by words", **expected}

    # a variable that one row depends on: the other one stays as it is
    again = run("run", "r.toml", "--set", "order=2", "--json")
    summary = json.loads(again.stdout)
    assert [step["state"] for step in summary["steps"]] == ["done", "skipped", "done", "skipped"]
    assert summary["results"][0]["metric"] == "bleu(n=2)"
    assert b"2/4 score-chrf \xe2\x80\xa6 as before" in again.stderr
    planned = run("run", "r.toml", "--set", "order=2", "--dry-run", "--json")
    assert {step["state"] for step in json.loads(planned.stdout)["steps"]} == {"done"}


def test_a_failing_step_ends_the_run_with_its_code(run: Run, folder: Path) -> None:
    with (folder / "items.jsonl").open("a") as stream:
        stream.write("{\n")
    done = run("run", "r.toml", "--work", "deep/down")
    assert done.returncode == 3
    assert not done.stdout
    messages = done.stderr.decode().splitlines()
    assert messages[0].startswith("  rejoinder: items.jsonl:37: ")
    assert messages[-1] == "rejoinder: step 'score-bleu' failed with exit code 3"
    assert not (folder / "deep/down/bleu.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["none.toml"], 3, "none.toml: cannot be read: no such file"),
        (["items.jsonl"], 3, "items.jsonl: broken TOML"),
        (["r.toml", "--set", "ordr=2"], 2, "no such variable: did you mean 'order'?"),
        (["r.toml", "--set", "order"], 2, "--set order: expected NAME=VALUE"),
        (
            ["r.toml", "--work", "items.jsonl"],
            2,
            "items.jsonl: the work folder cannot be written: file exists",
        ),
    ],
)
def test_bad_arguments(
    run: Run, folder: Path, arguments: list[str], code: int, complaint: str
) -> None:
    done = run("run", *arguments)
    assert done.returncode == code
    assert complaint in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
