"""``rejoinder meta --references`` as a process: table, JSON, messages and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support import Run

RATINGS = [(1, 2), (5, 4), (2, 2), (4, 5), (3, 1), (5, 5), (1, 1), (2, 4), (3, 3), (4, 4)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rated = [
        {
            "id": f"{n}:bot",
            "context": [f"turn {n}"],
            "response": "x",
            "references": [
                {"text": "original", "ratings": {"ann": 5, "bob": 4}},
                {"text": f"retrieved {n}", "ratings": {"ann": ann, "bob": bob}},
            ],
        }
        for n, (ann, bob) in enumerate(RATINGS)
    ]
    weighted = [
        {
            "id": item["id"],
            "context": item["context"],
            "response": "x",
            "references": [
                "original",
                {"text": f"retrieved {n}", "weight": (n * 7 % 10) / 10},
                {"text": "unrated", "weight": -0.5},
            ],
        }
        for n, item in enumerate(rated[:-1])
    ]
    for name, records in (("rated", rated), ("expanded", weighted), ("bare", weighted[:0])):
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (tmp_path / f"{name}.jsonl").write_text(lines)
    return tmp_path


def test_table_and_counts(run: Run, folder: Path) -> None:
    done = run("meta", "--references", "rated.jsonl", "expanded.jsonl", "--resamples", "200")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert "Weights of references against people's ratings" in lines
    assert max(map(len, lines)) <= 80
    assert [line.split(",")[0].strip() for line in lines if "pearman" in line] == ["weight"]
    messages = done.stderr.decode()
    assert "9 references of 9 contexts have a weight and a rating\n" in messages
    assert "2 annotators, Cohen's kappa" in messages
    # both references of the context that was not expanded
    assert "2 rated references are not among the references with weights\n" in messages
    assert "9 rated references have no weight\n" in messages
    assert "9 references with a weight have no rating\n" in messages


def test_json_has_all_figures(run: Run, folder: Path) -> None:
    done = run("meta", "--references", "rated.jsonl", "expanded.jsonl", "--json")
    found = json.loads(done.stdout)
    assert {k: found[k] for k in ("contexts", "unmatched", "unweighted", "unrated")} == {
        "contexts": 9,
        "unmatched": 2,
        "unweighted": 9,
        "unrated": 9,
    }
    assert found["result"]["n"] == 9
    assert found["undefined"] is None
    # nine references in common are fewer than ten: no correlation with single annotators
    assert found["result"]["annotators"] == {}
    assert len(found["humans"]["alpha_ci"]) == 2
    assert [each["name"] for each in found["annotators"]["before"]["annotators"]] == ["ann", "bob"]


def test_wrong_usage_is_reported_at_once(run: Run, folder: Path) -> None:
    done = run(
        *("meta", "--references", "rated.jsonl", "expanded.jsonl"),
        *("--level", "system", "--curve", "--correct", "bot", "--min-kappa", "3"),
    )
    assert (done.returncode, done.stdout) == (2, b"")
    for complaint in (
        b"--level has no use with --references",
        b"--curve has no use with --references",
        b"--correct has no use with --references",
        b"--min-kappa must be from -1 to 1, got 3",
    ):
        assert complaint in done.stderr
    done = run("meta", "rated.jsonl")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Give SCORES, a file that 'score' wrote" in done.stderr
    done = run("meta", "--references", "-", "-")
    assert done.returncode == 2
    assert b"only one of the two files can be stdin" in done.stderr


def test_bad_data_names_its_file(run: Run, folder: Path) -> None:
    done = run("meta", "--references", "expanded.jsonl", "rated.jsonl")
    assert done.returncode == 3
    assert b"expanded.jsonl: no reference has ratings" in done.stderr
    done = run("meta", "--references", "rated.jsonl")
    assert done.returncode == 3
    assert b"rated.jsonl: the rated references have no weights here" in done.stderr
    done = run("meta", "--references", "rated.jsonl", "bare.jsonl")
    assert done.returncode == 3
    assert b"bare.jsonl" in done.stderr


def test_single_annotators_and_people_in_the_table(run: Run, folder: Path) -> None:
    """Ten references: those with single annotators are shown, too."""
    lines = (folder / "rated.jsonl").read_text().splitlines()
    both = []
    for n, line in enumerate(lines):
        item = json.loads(line)
        item["references"][1]["weight"] = n * 7 % 10 / 10
        both.append(item)
    (folder / "both.jsonl").write_text("".join(json.dumps(item) + "\n" for item in both))
    done = run("meta", "--references", "both.jsonl")
    assert done.returncode == 0, done.stderr
    rows = [line.split(",")[0].strip() for line in done.stdout.decode().splitlines()]
    assert (rows.count("weight"), rows.count("annotators")) == (3, 3)
    found = json.loads(run("meta", "--references", "both.jsonl", "--json").stdout)
    extremes = found["result"]["annotators"]["pearson"]
    assert extremes["min"] <= extremes["mean"] <= extremes["max"]
