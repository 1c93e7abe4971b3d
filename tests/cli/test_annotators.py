"""Unreliable annotators in ``rejoinder meta``: listed, dropped, and the effect."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from support import Run

METRICS = {"bleu": 1.0, "svr(d=bleu(smooth=nist),d2=wer,d3=sentence-cosine)": 0.5}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """120 replies, every fourth a distractor, rated by three who look and one who does not."""
    rng = np.random.default_rng(1)
    worth = np.where(np.arange(120) % 4 == 0, -2.0, rng.normal(size=120))
    items, scores = [], []
    for n, w in enumerate(worth):
        ratings = {
            name: float(np.clip(np.rint(3 + 1.2 * w + 0.8 * rng.normal()), 1, 5))
            for name in ("ann", "bob", "cy")
        }
        ratings["careless"] = float(rng.integers(1, 6))
        if n == 7:
            ratings["once"] = 3.0
        system = "bot" if n % 4 else "distractor"
        items.append(
            {"id": f"{n}", "context_id": f"{n // 4}", "response": "x", "system": system}
            | {"ratings": ratings}
        )
        scores += [
            {"id": f"{n}", "metric": name, "value": w + noise * rng.normal()}
            for name, noise in METRICS.items()
        ]
    write(tmp_path / "items.jsonl", items)
    write(tmp_path / "scores.jsonl", scores)
    return tmp_path


def write(path: Path, records: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


ASKED = ("meta", "items.jsonl", "scores.jsonl", "--resamples", "200")


def test_dropping_unreliable_annotators_raises_correlations(run: Run, folder: Path) -> None:
    listed = json.loads(run(*ASKED, "--json").stdout)
    people = listed["annotators"]
    assert [each["name"] for each in people["unreliable"]] == ["careless"]
    assert (people["dropped"], people["after"]) == ([], None)
    assert "results" not in people["before"]
    ratings = {who["name"]: who["ratings"] for who in people["before"]["annotators"]}
    assert ratings == {"ann": 120, "bob": 120, "cy": 120, "careless": 120, "once": 1}
    found = json.loads(run(*ASKED, "--drop-unreliable", "--json").stdout)
    people = found["annotators"]
    assert people["dropped"] == ["careless"]
    # the results without the option are those before
    assert people["before"]["results"] == listed["results"]
    assert people["before"]["alpha"] + 0.2 < people["after"]["alpha"] == found["humans"]["alpha"]
    for before, after in zip(listed["results"], found["results"], strict=True):
        assert before["spearman"] + 0.02 < after["spearman"]
    # by kappa alone, without distractors
    alone = json.loads(run(*ASKED, "--distractor", "none", "--json").stdout)["annotators"][
        "unreliable"
    ]
    assert [each["name"] for each in alone] == ["careless"]
    assert alone[0]["reason"].startswith("kappa with the others is")
    table = b" ".join(run(*ASKED, "--distractor", "none").stdout.split())
    assert b"Below --min-kappa, the annotator with the lowest kappa is unreliable" in table
    assert b"Below --min-kappa" not in run(*ASKED, "--min-kappa", "-1").stdout


def test_tables_before_and_after_dropping_annotators(run: Run, folder: Path) -> None:
    done = run(*ASKED)
    assert b"1 annotator is unreliable: --drop-unreliable leaves their ratings out" in done.stderr
    assert b"before and after" not in done.stdout
    done = run(*ASKED, "--drop-unreliable")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert max(map(len, lines)) <= 80
    (careless,) = (line for line in lines if line.startswith(" careless"))
    assert "unreliable: rated 30" in careless
    assert any(line.startswith(" once") and "only one rating" in line for line in lines)
    assert "Agreement with people before and after annotators were dropped" in lines
    assert b"dropped: careless\nbefore: 481 ratings of 5 named" in done.stderr
    assert b"after: 361 ratings of 4 named annotators, Cohen's kappa" in done.stderr


def test_unknown_annotators_and_distractors_are_reported(run: Run, folder: Path) -> None:
    done = run(*ASKED, "--drop-annotator", "carless", "--min-kappa", "2", "--svg", "no.svg")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--min-kappa must be from -1 to 1, got 2" in done.stderr
    assert b"--svg draws the curve: add --curve" in done.stderr
    assert not (folder / "no.svg").exists()
    done = run(*ASKED, "--drop-annotator", "carless")
    assert b"--drop-annotator carless: did you mean 'careless'?" in done.stderr
    done = run(*ASKED, "--distractor", "plant")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--distractor plant: no reply is of this system: " in done.stderr
    done = run(*ASKED, "--drop-unreliable", "--min-kappa", "-1", "--max-distractor", "1")
    assert b"no annotator is unreliable: --drop-unreliable drops none" in done.stderr
    everyone = [f"--drop-annotator={name}" for name in ("ann", "bob", "cy", "careless", "once")]
    done = run(*ASKED, *everyone)
    assert done.returncode == 3
    assert b"items.jsonl: no ratings are left after these annotators are dropped" in done.stderr
    lines = [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()]
    numbers = [list(line["ratings"].values()) for line in lines]
    unnamed = [n if len(n) == 4 else n[0] for n in numbers]
    write(folder / "items.jsonl", [a | {"ratings": b} for a, b in zip(lines, unnamed, strict=True)])
    done = run(*ASKED, "--drop-unreliable", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["annotators"] is None
    assert b"no rating names its annotator" not in run(*ASKED).stderr
    done = run(*ASKED, "--drop-unreliable")
    assert b"no rating names its annotator, so none can be dropped" in done.stderr
    done = run(*ASKED, "--drop-annotator", "ann")
    assert b"--drop-annotator ann: the data name no annotators" in done.stderr


def test_system_level_without_dropped_annotators(run: Run, folder: Path) -> None:
    lines = [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()]
    systems = [line | {"system": f"{line['system']}{n % 4}"} for n, line in enumerate(lines)]
    write(folder / "items.jsonl", systems)
    asked = (*ASKED, "--level", "system", "--drop-annotator", "careless", "--json")
    done = run(*asked)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["results"][0]["level"] == "system"
    was = found["annotators"]["before"]["results"]
    assert [r["metric"] for r in was] == list(METRICS)
    assert was[0]["pearson"] != found["results"][0]["pearson"]
