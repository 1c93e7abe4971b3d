"""Human ratings of the diversity of sets against set metrics, as two command lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support import Run

REPLIES = (("a b", "a b"), ("a b", "a c"), ("a b", "c d"), ("a a", "a a"))


@pytest.fixture
def folder(tmp_path: Path, run: Run) -> Path:
    items = [
        {"id": f"{c}{n}", "context_id": str(c), "system": "bot", "response": text}
        for c in range(12)
        for n, text in enumerate(REPLIES[c % 4])
    ]
    sets = [
        {"context_id": str(c), "system": "bot", "ratings": {"ann": [1, 3, 4, 2][c % 4], "bob": 1}}
        for c in range(12)
    ]
    for name, records in (("items", items), ("sets", sets)):
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (tmp_path / f"{name}.jsonl").write_text(lines)
    done = run("score", "items.jsonl", "-m", "distinct(n=1,tok=whitespace)", "-o", "scores.jsonl")
    assert done.returncode == 0, done.stderr
    return tmp_path


ASKED = ("meta", "items.jsonl", "scores.jsonl", "--set-ratings", "sets.jsonl")


def test_sets_are_correlated_with_their_ratings(run: Run, folder: Path) -> None:
    done = run(*ASKED, "--level", "context", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (result,) = found["results"]
    # values 2 3 4 1, mean ratings 1 2 2.5 1.5: 1 - 6 * 2 / (4 * 15)
    assert (result["level"], result["n"]) == ("context", 12)
    assert result["spearman"] == pytest.approx(0.8)
    assert found["humans"]["annotators"] == 2
    table = run(*ASKED, "--level", "context")
    assert b"Agreement with people over sets of replies" in table.stdout
    assert b"2 annotators, Cohen's kappa" in table.stderr
    assert max(map(len, table.stdout.decode().splitlines())) <= 80


def test_single_replies_stay_refused(run: Run, folder: Path) -> None:
    done = run(*ASKED)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--set-ratings rates sets of replies: add --level context" in done.stderr
    lines = [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()]
    rated = [json.dumps({**line, "ratings": n}) + "\n" for n, line in enumerate(lines)]
    (folder / "rated.jsonl").write_text("".join(rated))
    done = run("meta", "rated.jsonl", "scores.jsonl")
    assert done.returncode == 3
    assert b"it scores sets of replies, not single ones" in done.stderr


def test_bad_ratings_name_their_file_and_line(run: Run, folder: Path) -> None:
    (folder / "bad.jsonl").write_text('{"context_id": "1", "ratings": "good"}\n')
    done = run(*ASKED[:3], "--level", "context", "--set-ratings", "bad.jsonl")
    assert done.returncode == 3
    assert b"bad.jsonl:1: ratings: expected a number" in done.stderr
    (folder / "other.jsonl").write_text('{"context_id": "x", "system": "bot", "ratings": 1}\n')
    done = run(*ASKED[:3], "--level", "context", "--set-ratings", "other.jsonl")
    assert done.returncode == 3
    assert b"other.jsonl: none of the 1 rated sets is among the items" in done.stderr
