"""``rejoinder train system`` and its replies, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fitting.toy import row, write
from rejoinder.cli.main import run
from trained import QUICK, small_talk, trained_system

SETS = [part for change in QUICK for part in ("--set", change)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "pairs.parquet", small_talk())
    lines = [
        {"id": "1", "context": ["Do you like tea?"]},
        {"id": "2", "context": ["hello", "and what about rain ?"]},
        {"id": "3", "context": [""]},
    ]
    Path("contexts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


def test_train_and_reply(capsys: pytest.CaptureFixture[str]) -> None:
    """The folder bots/ is made; two systems reply; the figures are those of the card."""
    command = ["train", "system", "hred", "pairs.parquet", "--preset", "tiny", *SETS]
    assert run([*command, "-o", "bots/hred"]) == 0
    shown = capsys.readouterr()
    assert "perplexity by word" in shown.out
    assert max(map(len, shown.out.splitlines())) <= 80
    assert Path("bots/hred/curves.svg").read_text().startswith("<svg")
    assert run([*command, "-o", "bots/hred", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert f"{figures['result']['perplexity']:.2f}" in Path("bots/hred/README.md").read_text()
    systems = ["--system", "bots/hred", "--system", "trained(model=bots/hred,decoding=beam)"]
    assert run(["reply", "contexts.jsonl", *systems, "-n", "2", "-o", "items.jsonl"]) == 0
    assert "1 contexts without a reply: the last turn is empty" in capsys.readouterr().err
    items = [json.loads(line) for line in Path("items.jsonl").read_text().splitlines()]
    assert {item["system"] for item in items} == {"hred", "trained(model=bots/hred,decoding=beam)"}
    assert len(items) == 8
    assert run(["score", "items.jsonl", "-m", "distinct(n=2)", "-o", "scores.jsonl"]) == 0


def refused(capsys: pytest.CaptureFixture[str], code: int, *arguments: str) -> str:
    assert run(list(arguments)) == code
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert not Path("bot").exists()
    return " ".join(error.split())


def train(name: str, pairs: str = "pairs.parquet", *more: str) -> list[str]:
    return ["train", "system", name, pairs, "--preset", "tiny", "-o", "bot", *more]


def test_wrong_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean 'hred'" in refused(capsys, 2, *train("hread"))
    assert "unknown preset 'huge'" in refused(capsys, 2, *train("hred"), "--preset", "huge")
    text = refused(capsys, 2, *train("hred"), "--set", "hred.dropout=7", "--set", "data.x=1")
    assert "dropout" in text
    assert "'x'" in text
    assert "no such file" in refused(capsys, 3, *train("hred", "nothing.parquet")).lower()
    Path("full").mkdir()
    Path("full/notes.txt").write_text("mine")
    assert "other things" in refused(capsys, 2, *train("hred"), "-o", "full")


def test_bad_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    single = [
        row(f"d{n}", [], f"question {n} of many", f"answer {n} of many", f"{n}") for n in range(40)
    ]
    write(Path("single.parquet"), single)
    text = refused(capsys, 3, *train("hred", "single.parquet"))
    assert "no pair has more than one turn before its response" in text
    assert "--context 6" in text
    few = [row(f"d{n}", ["a b"], "b c", "c a", f"{n}") for n in range(20)]
    write(Path("few.parquet"), few)
    text = refused(capsys, 3, *train("hred", "few.parquet"), "--set", "vocabulary.kind=words")
    assert "the vocabulary has only 3 words" in text
    write(Path("one.parquet"), small_talk(1))
    assert "too few dialogues" in refused(capsys, 3, *train("hred", "one.parquet"))
    numbers = pa.table({"utterance": [1, 2], "response": [3, 4]})
    pq.write_table(numbers, "numbers.parquet")
    assert "expected text" in refused(capsys, 3, *train("hred", "numbers.parquet"))
    Path("text.parquet").write_text("no parquet")
    refused(capsys, 3, *train("hred", "text.parquet"))


def test_bad_systems(capsys: pytest.CaptureFixture[str]) -> None:
    def reply(system: str) -> list[str]:
        return ["reply", "contexts.jsonl", "--system", system, "-o", "items.jsonl"]

    assert "is not a trained dialogue system" in refused(capsys, 3, *reply("bots/nothing"))
    assert "it has no manifest.json" in refused(capsys, 3, *reply("./"))
    hred = trained_system("hred")
    assert "top_k must be" in refused(capsys, 2, *reply(f"trained(model={hred},top_k=-3)"))
    assert "needs model=" in refused(capsys, 2, *reply("trained"))
    twice = refused(capsys, 2, *reply(str(hred)), "--system", f"{hred}/")
    assert "given twice" in twice
    japanese = [{"context": ["今日は暑いですね。映画に行きませんか。"]}] * 3
    Path("contexts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in japanese))
    assert "Japanese" in refused(capsys, 3, *reply(str(hred)))
    assert not Path("items.jsonl").exists()
    assert run([*reply(str(hred)), "--any-language"]) == 0
    assert "its replies mean little" in capsys.readouterr().err
