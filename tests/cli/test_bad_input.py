"""Bad input: an exit code, one line that names the place and the remedy, nothing half-written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from rejoinder.cli import main
from support import COMMAND, Run

GOOD = b'{"id": "a", "context": ["hi"], "response": "hello you", "references": ["hello"]}\n'

BAD_LINES = {
    "broken JSON": (b'{"id": "b", \n', "broken JSON"),
    "missing field": (b'{"id": "b"}\n', "missing"),
    "wrong type": (b'{"id": "b", "response": ["x"]}\n', "expected text, got a list"),
    "rating is text": (b'{"id": "b", "response": "x", "ratings": "five"}\n', "ratings: expected"),
    "NaN": (b'{"id": "b", "response": "x", "ratings": NaN}\n', "NaN"),
    "weight": (
        b'{"id": "b", "response": "x", "references": [{"text": "y", "weight": -2}]}\n',
        "from -1 to 1",
    ),
    "duplicate id": (GOOD, "the id is in line 1, too"),
    "invalid UTF-8": (b'{"id": "b", "response": "\xc3("}\n', "not UTF-8"),
    "cut off": (b'{"id": "b", "respo', "ends in the middle of a line"),
    "50 MB line": (b'{"id": "b", "response": "' + b"y" * 50_000_000 + b'"}\n', "longer than 16 MB"),
}


@pytest.mark.parametrize("kind", BAD_LINES)
def test_bad_items(run: Run, tmp_path: Path, kind: str) -> None:
    line, complaint = BAD_LINES[kind]
    (tmp_path / "items.jsonl").write_bytes(GOOD + line)
    done = run("score", "items.jsonl", "-m", "bleu", "-o", "scores.jsonl")
    assert done.returncode == 3
    message = done.stderr.decode()
    assert message.startswith("rejoinder: items.jsonl:2: ")
    assert complaint in message
    assert message.count("\n") == 1
    assert done.stdout == b""
    assert os.listdir(tmp_path) == ["items.jsonl"]


def test_empty_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_bytes(b"")
    done = run("score", "items.jsonl", "-m", "bleu", "-o", "scores.jsonl")
    assert (done.returncode, done.stderr.count(b"\n")) == (3, 1)
    assert b"items.jsonl: the file is empty" in done.stderr
    assert os.listdir(tmp_path) == ["items.jsonl"]


def test_stdin_is_named(run: Run) -> None:
    done = run("score", "-", "-m", "bleu", stdin=GOOD + b"{\n")
    assert done.returncode == 3
    assert b"rejoinder: stdin:2: " in done.stderr


def test_all_wrong_arguments_at_once(run: Run, tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_bytes(GOOD)
    done = run("score", "items.jsonl", "-m", "blue", "-m", "bleu(m=2)", "-m", "rouge-l", "-l", "xx")
    assert done.returncode == 2
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 3
    assert any("unknown metric 'blue': did you mean 'bleu'" in line for line in lines)
    assert any("bleu has no parameter 'm'" in line for line in lines)
    assert any("'xx'" in line for line in lines)


@pytest.mark.parametrize(
    "arguments",
    [
        ["score"],
        ["score", "items.jsonl"],
        ["scores"],
        ["score", "items.jsonl", "-m", "bleu", "--nonsense"],
        ["score", "items.jsonl", "-m", "bleu", "-m", "bleu"],
        ["score", "items.jsonl", "-m", "bleu("],
        ["score", "items.jsonl", "-m", "bleu", "--json"],
        ["score", "items.jsonl", "-m", "bleu", "-o", "no/such/folder/x"],
        ["score", "items.jsonl", "-m", "bleu", "-o", "."],
        ["score", "items.jsonl", "-m", "bleu", "-o", "items.jsonl"],
        ["meta", "items.jsonl", "scores.jsonl", "--level", "word"],
        ["datasets", "export", "grade-convai3"],
        ["datasets", "export", "grade-convai2", "--references", "many"],
        ["datasets", "export", "grade-convai2", "--system", "nobody"],
        ["explain", "blu"],
    ],
)
def test_wrong_usage(run: Run, tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "items.jsonl").write_bytes(GOOD)
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(b"rejoinder: ")
    assert done.stderr.count(b"\n") == 1
    assert os.listdir(tmp_path) == ["items.jsonl"]
    assert (tmp_path / "items.jsonl").read_bytes() == GOOD


def test_ids_of_two_files_must_match(run: Run, tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_bytes(GOOD)
    (tmp_path / "scores.jsonl").write_bytes(b'{"id": "z", "metric": "bleu", "value": 0.5}\n')
    done = run("meta", "items.jsonl", "scores.jsonl")
    assert done.returncode == 3
    assert done.stderr.decode() == (
        "rejoinder: scores.jsonl:1: the item 'z' is not in items.jsonl;"
        " give the items file that was scored\n"
    )


def test_missing_extras_and_data_say_how_to_get_them(run: Run, tmp_path: Path) -> None:
    done = run("datasets", "export", "grade-convai2", env={"REJOINDER_DATA": ""})
    assert done.returncode == 4
    assert b"REJOINDER_DATA" in done.stderr
    assert done.stderr.count(b"\n") == 1
    (tmp_path / "fugashi.py").write_text("raise ImportError")
    (tmp_path / "items.jsonl").write_bytes(GOOD)
    done = run(
        "score", "items.jsonl", "-m", "bleu(tok=ja-mecab)", env={"PYTHONPATH": str(tmp_path)}
    )
    assert done.returncode == 4
    assert b"pip install 'rejoinder[ja]'" in done.stderr
    # a package that the code imports without a check
    (tmp_path / "pyarrow").mkdir()
    missing = "raise ModuleNotFoundError('No module named pyarrow', name='pyarrow')"
    (tmp_path / "pyarrow" / "__init__.py").write_text(missing)
    arguments = ("expand", "items.jsonl", "--pool", "p.parquet", "-o", "out.jsonl")
    done = run(*arguments, env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 4
    assert b"needs pyarrow, not installed; run: pip install" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_the_wrong_tokenizer_for_all_items_is_an_error(run: Run, tmp_path: Path) -> None:
    text = "今日はとても天気がいいですね"
    item = {"id": "1", "response": text, "references": [text]}
    (tmp_path / "items.jsonl").write_text(json.dumps(item))
    done = run("score", "items.jsonl", "-m", "bleu", "-o", "scores.jsonl")
    assert done.returncode == 3
    assert "no item could be scored" in done.stderr.decode()
    assert "tok=ja-mecab" in done.stderr.decode()
    assert os.listdir(tmp_path) == ["items.jsonl"]
    done = run("score", "items.jsonl", "-m", "bleu", "-l", "ja", "-o", "scores.jsonl")
    assert done.returncode == 0
    score = json.loads((tmp_path / "scores.jsonl").read_text())
    assert score["value"] == pytest.approx(1.0)
    assert score["metric"] == "bleu(tok=ja-mecab)"


def test_items_without_references_are_unscored_and_counted(run: Run, tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_bytes(GOOD + b'{"id": "b", "response": "x"}\n')
    done = run("score", "items.jsonl", "-m", "rouge-l", "-o", "scores.jsonl")
    assert done.returncode == 0
    assert b"rouge-l: 1 unscored: no references" in done.stderr
    last = json.loads((tmp_path / "scores.jsonl").read_text().splitlines()[-1])
    assert (last["value"], last["unscored"]) == (None, "no references")


def slow_items(path: Path) -> None:
    """A pipe that never ends: the program waits in the middle of its input."""
    os.mkfifo(path)


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_killed_run_leaves_no_output(tmp_path: Path, kind: signal.Signals) -> None:
    slow_items(tmp_path / "items.jsonl")
    process = subprocess.Popen(
        [*COMMAND, "score", "items.jsonl", "-m", "bleu", "-o", "scores.jsonl"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
    )
    with open(tmp_path / "items.jsonl", "wb") as pipe:
        pipe.write(GOOD)
        pipe.flush()
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob(".scores*")) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert list(tmp_path.glob(".scores*")), "the run never began to write"
        process.send_signal(kind)
        code = process.wait(timeout=60)
    assert not (tmp_path / "scores.jsonl").exists()
    assert process.stderr is not None
    with process.stderr as messages:
        said = messages.read()
    if kind is not signal.SIGKILL:  # nobody can clean up after that one
        assert os.listdir(tmp_path) == ["items.jsonl"]
        assert code == {signal.SIGINT: 130, signal.SIGTERM: 143}[kind]
        assert (b"rejoinder: interrupted\n" in said) == (kind is signal.SIGINT)  # nothing is kept


@pytest.mark.parametrize(
    ("arguments", "resumable"),
    [
        (["fit", "pairs.parquet", "-o", "evaluator"], True),
        (["corpus", "log.jsonl", "--format", "chat", "-o", "pairs.parquet"], True),
        (["train", "dapt", "texts.txt", "-o", "model"], True),
        (["train", "vectors", "texts.txt", "-o", "vectors"], False),
        (["score", "items.jsonl", "-m", "bleu", "-o", "scores.jsonl"], False),
    ],
)
def test_an_interrupted_command_says_whether_it_can_be_continued(
    arguments: list[str],
    resumable: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupt(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "_run", interrupt)
    assert main.run(arguments) == 130
    hint = "; the same command continues where it stopped" if resumable else ""
    assert capsys.readouterr().err == f"rejoinder: interrupted{hint}\n"


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    lines = (
        json.dumps({"id": str(i), "response": "a b", "references": ["a b"]}) for i in range(20000)
    )
    (tmp_path / "items.jsonl").write_text("\n".join(lines))
    producer = subprocess.Popen(
        [*COMMAND, "score", "items.jsonl", "-m", "bleu"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert producer.stdout is not None
    assert producer.stderr is not None
    assert producer.stdout.readline().startswith(b'{"id":"0"')
    producer.stdout.close()
    assert producer.wait(timeout=60) == 0
    assert b"Traceback" not in producer.stderr.read()
    producer.stderr.close()


def test_a_full_disk_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_bytes(GOOD)
    done = run("score", "items.jsonl", "-m", "bleu", "-o", "/dev/full")
    assert done.returncode == 2
    assert done.stderr.decode().startswith(
        "rejoinder: /dev/full: cannot be written: no space left on device"
    )


def test_negative_seeds_are_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_bytes(GOOD)
    done = run("score", "items.jsonl", "-m", "bleu", "--seed", "-1")
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)


def test_the_wrong_tokenizer_is_named_by_compare_too(run: Run, tmp_path: Path) -> None:
    text = "今日はとても天気がいいですね"
    items = [
        {"id": f"{c}{s}", "context_id": str(c), "system": s, "response": text, "references": [text]}
        for c in range(3)
        for s in "ab"
    ]
    (tmp_path / "i.jsonl").write_text("\n".join(map(json.dumps, items)))
    done = run("compare", "i.jsonl", "-m", "bleu")
    assert done.returncode == 3
    assert done.stderr.decode().startswith("rejoinder: i.jsonl: bleu: no item could be scored: the")
