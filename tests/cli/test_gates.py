"""Gates of the command line: conditions that are wrong, repeated, or judged on few replies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rejoinder.cli import main


@pytest.fixture(autouse=True)
def items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [
        {
            "id": f"{i}{system}",
            "context_id": str(i),
            "system": system,
            "response": f"the cat {i} sat on the mat",
            "references": [] if i == 3 else [f"the cat {i} sat on a mat"],
        }
        for i in range(4)
        for system in ("old", "new")
    ]
    Path("i.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--fail-under", "bleu(n=2)=0.9", "--fail-under", "bleu( n = 2 )=0"], "given twice"),
        (["--fail-under", "bleu(n=2)=-inf"], "expected METRIC=NUMBER"),
        (["--fail-under", "bleu(n=2)=nan"], "expected METRIC=NUMBER"),
        (["--fail-under", "=1"], "expected METRIC=NUMBER"),
    ],
)
def test_wrong_limits_are_refused(
    options: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["score", "i.jsonl", "-m", "bleu(n=2)", "-o", "s.jsonl", *options]) == 2
    assert complaint in capsys.readouterr().err


def test_a_limit_that_is_judged_on_a_part_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["score", "i.jsonl", "-m", "bleu(n=2)", "-o", "s.jsonl"]
    assert main.run([*arguments, "--fail-under", "bleu(n=2)=0.1"]) == 0
    warning = "warning: --fail-under bleu(n=2) of old: judged on 3 of 4 replies (75%)"
    assert warning in capsys.readouterr().err


def test_a_gate_of_compare_says_that_it_passed(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["compare", "i.jsonl", "-m", "bleu(n=2)", "--fail-if", "worse-than=old"]
    assert main.run(arguments) == 0
    passed = "gate passed: no system is significantly worse than old"
    assert passed in capsys.readouterr().err
    assert main.run([*arguments, "--fail-if", "worse-than=new"]) == 2
    assert "--fail-if is given twice" in capsys.readouterr().err


def test_a_third_system_does_not_change_the_verdict_of_a_gate(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The new bot is worse in 20 contexts; a third one answered only 4 of them."""
    lines = [
        {
            "id": f"{i}{system}",
            "context_id": str(i),
            "system": system,
            "response": f"the cat {i} sat on the mat" if system == "old" else f"no {i} idea",
            "references": [f"the cat {i} sat on a mat"],
        }
        for i in range(20)
        for system in ("old", "new", "third")
        if system != "third" or i < 4
    ]
    Path("three.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    gate = ["compare", "three.jsonl", "-m", "rouge-l", "--fail-if", "worse-than=old"]
    assert main.run(gate) == 5
    streams = capsys.readouterr()
    (failed,) = [line for line in streams.err.splitlines() if "is worse than" in line]
    # with 4 contexts the smallest p is 2 / 16: only new can fail
    assert "new is worse than old by" in failed and "20 contexts)" in failed
    assert "third is worse" not in failed
    assert "rouge-l over 4 contexts that all systems answered" in streams.out
    assert main.run([*gate, "--json"]) == 5
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert {test["system"]: test["contexts"] for test in result["baseline_tests"]} == {
        "new": 20,
        "third": 4,
    }


def test_compare_without_a_criterion_names_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["compare", "i.jsonl"]) == 2
    assert "Add -m METRIC, a SCORES file, or --by people" in capsys.readouterr().err
