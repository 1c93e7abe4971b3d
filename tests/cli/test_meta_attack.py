"""``rejoinder meta --attack`` on the command line: table, messages, exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from support import Run


@pytest.fixture
def folder(run: Run, tmp_path: Path) -> Path:
    """The attacks in three languages, scored by a judge that gives 2, and 5 to an order."""
    lines = b""
    for language in ("en", "ja", "zh"):
        done = run("datasets", "export", f"judge-attacks-{language}")
        assert done.returncode == 0, done.stderr
        lines += done.stdout
    (tmp_path / "attacks.jsonl").write_bytes(lines)
    with (tmp_path / "scores.jsonl").open("w") as out:
        for line in lines.splitlines():
            item = json.loads(line)
            score = {
                "id": item["id"],
                "metric": "judge(url=http://127.0.0.1:9/v1,model=m)",
                "value": 5 if item["system"] == "order" else 2,
                "signature": "judge|model:m|scale:1-5|version:0",
            }
            out.write(json.dumps(score) + "\n")
    return tmp_path


def test_table_and_json(run: Run, folder: Path) -> None:
    done = run("meta", "attacks.jsonl", "scores.jsonl", "--attack", "--resamples", "100")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert max(map(len, lines)) <= 80
    rows = {}
    for line in lines:
        if match := re.match(r" ((?:en |ja |zh )?[a-z]+) +(\d.*)$", line):
            rows[match[1]] = match[2].split()
    # 8 contexts each in three languages, 7 kinds: an order moves 2 to 5, the others nothing
    assert rows["ja order"][:3] == ["8", "2.00", "3.00"] and rows["ja order"][-1] == "100%"
    assert rows["zh verdict"][:4] == ["8", "2.00", ".00", "[.00,"]
    assert rows["all"][0] == "168"
    said = b" ".join(done.stderr.split())
    assert b"168 attacked replies: order, system, close, turn, verdict, plea, alone" in said
    assert b"net: the shift less that of a harmless sentence" in said
    found = json.loads(run("meta", "attacks.jsonl", "scores.jsonl", "--attack", "--json").stdout)
    (review,) = found["attacks"]
    assert review["scale"] == [1, 5]
    total = review["rows"][-1]
    # one kind of seven moves by 3
    assert total["net"]["value"] == pytest.approx(3 / 7)
    assert total["raised"] == pytest.approx(1 / 7)


@pytest.mark.parametrize(
    ("arguments", "code", "messages"),
    [
        (
            ["--attack", "--level", "system", "--curve", "--drop-unreliable", "--references"],
            2,
            ["--attack has no use with --references", "--level has no use", "--curve has no use"],
        ),
        (
            ["--attack", "--as-judges", "--min-kappa", "0.5"],
            2,
            ["--as-judges has no use with --attack", "--min-kappa has no use with --attack"],
        ),
        (["--attack"], 3, ["plain.jsonl: no context has a reply of the system 'plain'"]),
    ],
)
def test_bad_options(
    run: Run, folder: Path, arguments: list[str], code: int, messages: list[str]
) -> None:
    plain = [x for x in (folder / "attacks.jsonl").read_text().splitlines() if ":plain" in x]
    (folder / "plain.jsonl").write_text("\n".join(plain))
    scores = [x for x in (folder / "scores.jsonl").read_text().splitlines() if ":plain" in x]
    (folder / "some.jsonl").write_text("\n".join(scores))
    done = run("meta", "plain.jsonl", "some.jsonl", *arguments)
    assert done.returncode == code, done.stderr
    said = b" ".join(done.stderr.split()).decode()
    for message in messages:
        assert message in said


def test_scores_are_needed(run: Run, folder: Path) -> None:
    done = run("meta", "attacks.jsonl", "--attack")
    assert done.returncode == 2 and b"where are the scores?" in done.stderr
