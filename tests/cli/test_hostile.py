"""Data that mean harm, and outputs that would destroy what they are made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support import Run


def write(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def item(number: int, **more: Any) -> dict[str, Any]:
    return {"id": str(number), "context": ["hi"], "response": "yes", "system": "a", **more}


@pytest.mark.parametrize(
    ("verb", "value", "message"),
    [
        ("report", "1e308", "value: expected a number from -1e+100 to 1e+100, got 1e+308"),
        ("meta", "1e999", "a number is too large"),
    ],
)
def test_scores_that_overflow_are_refused(
    run: Run, tmp_path: Path, verb: str, value: str, message: str
) -> None:
    write(tmp_path / "items.jsonl", [item(n, ratings=[n]) for n in range(4)])
    lines = [f'{{"id": "{n}", "metric": "m", "value": {value}}}\n' for n in range(4)]
    (tmp_path / "scores.jsonl").write_text("".join(lines))
    done = run(verb, "items.jsonl", "scores.jsonl")
    assert done.returncode == 3
    assert done.stderr.decode() == f"rejoinder: scores.jsonl:1: {message}\n"


def test_names_in_messages_do_not_command_the_terminal(run: Run, tmp_path: Path) -> None:
    hostile = "\x1b[2Jbob\x9b"
    rated = [item(n, ratings={hostile: n, "ann": 3 - n}) for n in range(4)]
    write(tmp_path / "items.jsonl", rated)
    scores = [{"id": str(n), "metric": "m\x1b[31m", "value": 1.0} for n in range(4)]
    write(tmp_path / "scores.jsonl", scores)
    wrong = run("meta", "items.jsonl", "scores.jsonl", "--drop-annotator", "carl\x1b[1m")
    assert wrong.returncode == 2
    done = run("meta", "items.jsonl", "scores.jsonl")
    assert done.returncode == 0
    assert b"no correlation" in done.stderr
    for stream in (wrong.stderr, done.stderr, done.stdout):
        assert not {"\x1b", "\x9b"} & set(stream.decode())
    assert b"bob" in wrong.stderr


def test_names_of_metrics_do_not_command_the_terminal(run: Run, tmp_path: Path) -> None:
    items = [item(n, context=[str(n // 2)], system="ab"[n % 2], ratings=[n]) for n in range(6)]
    write(tmp_path / "items.jsonl", items)
    name = "<s>\x1b[31m\nX"
    scores = [{"id": str(n), "metric": name, "value": float(n)} for n in range(6)]
    write(tmp_path / "scores.jsonl", scores)
    for verb in ("compare", "meta"):
        done = run(verb, "items.jsonl", "scores.jsonl")
        assert done.returncode == 0
        assert "\x1b" not in done.stdout.decode()
        assert "<s> [31m X" in done.stdout.decode()


def test_no_color_wins_over_force_color(run: Run, tmp_path: Path) -> None:
    colors = {"NO_COLOR": "1", "FORCE_COLOR": "1"}
    for arguments in (["ls"], ["--help"]):
        assert b"\x1b" not in run(*arguments, env=colors).stdout
    assert b"\x1b" in run("ls", env={"FORCE_COLOR": "1"}).stdout


@pytest.mark.parametrize("verb", ["score", "report", "expand", "reply"])
def test_an_output_does_not_replace_a_part_of_an_evaluator(
    run: Run, tmp_path: Path, verb: str
) -> None:
    (tmp_path / "ev").mkdir()
    (tmp_path / "ev" / "manifest.json").write_text("{}")
    write(tmp_path / "items.jsonl", [item(1)])
    write(tmp_path / "scores.jsonl", [{"id": "1", "metric": "bleu", "value": 1.0}])
    arguments = {
        "score": ["items.jsonl", "-m", "bleu"],
        "report": ["items.jsonl", "scores.jsonl"],
        "expand": ["items.jsonl"],
        "reply": ["items.jsonl", "--system", "random"],
    }[verb]
    done = run(verb, *arguments, "--evaluator", "ev", "-o", "ev/manifest.json")
    assert done.returncode == 2
    assert b"ev/manifest.json: the output would overwrite the input" in done.stderr
    assert (tmp_path / "ev" / "manifest.json").read_text() == "{}"


def test_pairs_do_not_replace_their_log(run: Run, tmp_path: Path) -> None:
    (tmp_path / "log.tsv").write_text("how are you?\tfine\n")
    done = run("corpus", "log.tsv", "--format", "tsv", "-o", "log.tsv")
    assert done.returncode == 2
    assert b"log.tsv: the output would overwrite the input" in done.stderr
    assert (tmp_path / "log.tsv").read_text() == "how are you?\tfine\n"


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("-", "-o -: this is not written to stdout; name a file"),
        (".", "cannot be written: it is a folder"),
        ("no/pairs", "no/pairs: cannot be written: there is no folder no"),
    ],
)
def test_an_output_that_has_to_be_a_file(
    run: Run, tmp_path: Path, output: str, message: str
) -> None:
    (tmp_path / "log.tsv").write_text("how are you?\tfine\n")
    for verb in (["corpus", "log.tsv", "--format", "tsv"], ["expand", "i.jsonl", "--pool", "p"]):
        done = run(*verb, "-o", output)
        assert done.returncode == 2
        assert message in done.stderr.decode()


def test_systems_that_do_not_differ_are_reported(run: Run, tmp_path: Path) -> None:
    rated = [item(n, system="abc"[n % 3], ratings=[n // 3]) for n in range(6)]
    write(tmp_path / "items.jsonl", rated)
    scores = [{"id": str(n), "metric": "m", "value": n // 3} for n in range(6)]
    write(tmp_path / "scores.jsonl", scores)
    done = run("meta", "items.jsonl", "scores.jsonl", "--level", "system")
    assert done.returncode == 0
    assert (
        b"m: no correlation: all mean scores, or all mean ratings, of the systems are equal"
        in done.stderr
    )
