"""Estimators over scored references, as a user starts them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support import Run

NEAR, MIDDLE = {"text": "a b c x", "weight": 0.6}, {"text": "a b x y", "weight": -0.2}


def write(path: Path, *lines: dict[str, object]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def test_scores_and_reasons(run: Run, tmp_path: Path) -> None:
    write(
        tmp_path / "items.jsonl",
        {"id": "1", "response": "a b c d", "references": [NEAR, MIDDLE]},
        {"id": "2", "response": "a b c d", "references": [NEAR, MIDDLE, "no score"]},
    )
    spec = "ws(d=wer(tok=whitespace))"
    done = run("score", "items.jsonl", "-m", spec, "-m", "svr", "-o", "scores.jsonl")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    found = {(line["id"], line["metric"]): line for line in lines}
    # e = .8 and .4 for similarities ¾ and ½
    assert found["1", spec]["value"] == pytest.approx((0.8 * 3 / 4 + 0.4 / 2) / 2)
    # the references of item 2 lack a score, so item 1 finds none that it could learn from
    # but those that do have one
    for metric in (spec, "svr"):
        reason = "a reference has no weight"
        assert found["2", metric]["value"] is None
        assert found["2", metric]["unscored"] == reason


def test_a_weight_outside_the_scale(run: Run, tmp_path: Path) -> None:
    write(
        tmp_path / "items.jsonl",
        {"id": "1", "response": "a b", "references": [NEAR, {"text": "c", "weight": 1.5}]},
    )
    done = run("score", "items.jsonl", "-m", "svr", "-o", "scores.jsonl")
    assert done.returncode == 3
    assert b"items.jsonl:1: " in done.stderr
    assert b"from -1 to 1, got 1.5" in done.stderr
    assert not (tmp_path / "scores.jsonl").exists()


def test_wrong_parameters(run: Run) -> None:
    done = run("score", "items.jsonl", "-m", "svr(share=some)", "-m", "am(d=distinct)")
    assert done.returncode == 2
    assert b"share=some is not one of auto, never, always" in done.stderr
    assert b"scores sets of replies" in done.stderr
