"""Real command lines of a new user: CSV files, gates, own metrics, other languages, help."""

from __future__ import annotations

import json
import os
from importlib.resources import files
from pathlib import Path

import pytest

from support import Run

CSV = """question,answer,bot,gold,rating
how are you,fine thanks,a,fine thanks,5
how are you,no idea,b,fine thanks,1
what time is it,it is noon,a,it is noon,4
what time is it,bananas,b,it is noon,1
where is it,over there,a,over there,5
where is it,,b,over there,2
"""
COLUMNS = "context=question,reply=answer,system=bot,references=gold,ratings=rating"
PLUGIN = '''
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.metrics.metric import ItemMetric


@dataclass(frozen=True, kw_only=True)
class Echo(ItemMetric):
    """1 if the reply is the last turn of the context."""

    name: ClassVar[str] = "echo"
    summary: ClassVar[str] = "is the reply the last turn?"
    needs: ClassVar[frozenset[str]] = frozenset({"context"})

    def stats(self, batch):
        same = [float(item.response == item.context[-1]) for item in batch.items]
        return np.array(same)[:, None]

    def finish(self, rows):
        return rows[..., 0]
'''


@pytest.fixture
def items(tmp_path: Path) -> Path:
    example = files("rejoinder").joinpath("examples", "replies-en.jsonl")
    (tmp_path / "items.jsonl").write_bytes(example.read_bytes())
    (tmp_path / "items.csv").write_text(CSV)
    return tmp_path


def test_csv_with_columns_of_its_own(run: Run, items: Path) -> None:
    done = run("score", "items.csv", "--columns", COLUMNS, "-m", "rouge-l", "-o", "s.jsonl")
    assert done.returncode == 0, done.stderr
    values = [json.loads(line)["value"] for line in (items / "s.jsonl").read_text().splitlines()]
    assert values[::2] == [1.0, 1.0, 1.0]
    assert b"1 reply is blank" in done.stderr
    done = run("compare", "items.csv", "--columns", COLUMNS, "--by", "people", "--json")
    assert done.returncode == 0, done.stderr
    (ranking,) = json.loads(done.stdout)["results"]
    assert [row["system"] for row in ranking["systems"]] == ["a", "b"]
    for arguments, complaint in (
        (("--columns", "reply"), b"expected FIELD=COLUMN"),
        (("--columns", "reply=a,reply=b"), b"given twice"),
    ):
        done = run("score", "items.csv", "-m", "rouge-l", *arguments)
        assert done.returncode == 2
        assert complaint in done.stderr


def test_scores_of_other_columns_are_explained(run: Run, items: Path) -> None:
    """Rows without ids have one of their content, which other columns change."""
    assert run("score", "items.csv", "-m", "rouge-l", "-o", "s.jsonl").returncode == 0
    columns = "context=gold,reply=answer,system=bot"
    done = run("compare", "items.csv", "s.jsonl", "--columns", columns)
    assert done.returncode == 3
    assert b"the same columns as when they were scored (see --columns)" in done.stderr


def test_columns_of_an_excluded_table_are_reported(run: Run, items: Path) -> None:
    """A wrong context would leave nothing out."""
    turns = [("a", "how are you"), ("b", "fine thanks"), ("a", "good to hear")]
    (items / "logs.jsonl").write_text(
        "".join(
            json.dumps({"dialogue_id": "1", "speaker": speaker, "text": text}) + "\n"
            for speaker, text in turns
        )
    )
    corpus = ("corpus", "logs.jsonl", "-f", "messages", "-o", "p.parquet")
    done = run(*corpus, "--exclude", "items.csv", "--json")
    assert done.returncode == 0, done.stderr
    assert b"items.csv: columns recognised by name: response = answer" in done.stderr
    assert b"context = question" in done.stderr
    assert b"--columns" not in done.stderr  # corpus has no such option


def test_compare_from_a_file_of_scores_as_a_gate(run: Run, items: Path) -> None:
    assert run("score", "items.jsonl", "-m", "rouge-l", "-o", "s.jsonl").returncode == 0
    done = run("compare", "items.jsonl", "s.jsonl", "--fail-if", "worse-than=careful", "--json")
    assert done.returncode == 5
    assert json.loads(done.stdout)["results"][0]["baseline_tests"]  # the result is still printed
    assert b"rejoinder: rouge-l: off-topic is worse than careful by 0.2051" in done.stderr
    gate = ("compare", "items.jsonl", "s.jsonl", "--fail-if")
    assert run(*gate, "worse-than=off-topic").returncode == 0
    assert run(*gate, "worse-than=careful", "--margin", "0.5").returncode == 0
    for arguments in (
        (*gate, "worse-than=nobody"),
        (*gate, "better-than=careful"),
        (*gate, "worse-than=careful", "--margin", "-1"),
        ("compare", "items.jsonl", "s.jsonl", "--margin", "1"),
        ("compare", "items.jsonl", "--by", "others"),
        ("compare", "items.jsonl"),
    ):
        assert run(*arguments).returncode == 2, arguments


def test_score_with_a_limit(run: Run, items: Path) -> None:
    done = run(
        "score", "items.jsonl", "-m", "bleu(n=2)", "--fail-under", "bleu(n=2)=0.1", "-o", "s.jsonl"
    )
    assert done.returncode == 5
    assert b"bleu(n=2) of generic: 0.0420 is below the limit 0.1" in done.stderr
    assert len((items / "s.jsonl").read_text().splitlines()) == 36  # written all the same
    assert run("score", "items.jsonl", "-m", "chrf", "--fail-under", "chrf=0").returncode == 0
    for limit in ("chrf", "chrf=high", "chrf=nan", "rouge-l=0.1"):
        assert run("score", "items.jsonl", "-m", "chrf", "--fail-under", limit).returncode == 2


def test_a_metric_of_ones_own(run: Run, items: Path) -> None:
    (items / "mine.py").write_text(PLUGIN)
    done = run("score", "items.jsonl", "-m", "echo", "--plugin", "mine.py", "-o", "s.jsonl")
    assert done.returncode == 0, done.stderr
    assert {json.loads(line)["value"] for line in (items / "s.jsonl").read_text().splitlines()} == {
        0.0
    }
    assert run("score", "items.jsonl", "-m", "echo").returncode == 2  # only when asked for
    assert b'"echo"' in run("ls", "--json", "--plugin", "mine.py").stdout
    (items / "broken.py").write_text("1 / 0")
    (items / "empty.py").write_text("")
    for name, code in (("broken.py", 2), ("empty.py", 2), ("none.py", 3), ("items.jsonl", 2)):
        done = run("score", "items.jsonl", "-m", "echo", "--plugin", name)
        assert done.returncode == code, name
        assert done.stderr.count(b"\n") == 1


def test_texts_in_a_language_that_the_encoder_does_not_know(run: Run, tmp_path: Path) -> None:
    example = files("rejoinder").joinpath("examples", "replies-ja.jsonl")
    (tmp_path / "ja.jsonl").write_bytes(example.read_bytes())
    for verb in (("score", "-o", "s.jsonl"), ("compare",)):
        asked = (verb[0], "ja.jsonl", "-m", "sentence-cosine", *verb[1:])
        (tmp_path / "s.jsonl").unlink(missing_ok=True)
        done = run(*asked)
        assert done.returncode == 3
        assert b"Japanese" in done.stderr
        assert b"--any-language" in done.stderr
        assert not (tmp_path / "s.jsonl").exists()
        done = run(*asked, "--any-language")
        assert done.returncode == 0, done.stderr
        assert b"warning: sentence-cosine" in done.stderr
    assert run("score", "ja.jsonl", "-m", "bleu", "-l", "ja", "-o", "s.jsonl").returncode == 0


def test_help_points_to_lists_and_presets(run: Run) -> None:
    assert b"see 'ls'" in run("score", "--help").stdout
    assert b"medium" in run("fit", "--help").stdout
    top = run("--help").stdout
    assert b"--install-completion" in top
    assert b"<bool>" not in top


def test_metric_names_are_completed_in_the_shell(run: Run) -> None:
    done = run(
        env={
            "_REJOINDER_COMPLETE": "complete_bash",
            "COMP_WORDS": "rejoinder score items.jsonl -m ble",
            "COMP_CWORD": "4",
        }
    )
    assert done.stdout.split() == [b"bleu"], done


@pytest.mark.parametrize("name", ["x" * 300, "loop", "closed/items.jsonl"])
def test_paths_that_cannot_be_read(run: Run, items: Path, name: str) -> None:
    (items / "loop").symlink_to("loop")
    (items / "closed").mkdir()
    os.chmod(items / "closed", 0)
    try:
        done = run("score", name, "-m", "bleu")
    finally:
        os.chmod(items / "closed", 0o700)
    assert done.returncode == 3
    assert done.stderr.count(b"\n") == 1
    assert b"Traceback" not in done.stderr
