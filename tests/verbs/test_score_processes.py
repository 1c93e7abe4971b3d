"""``score`` with several processes: the same bytes, notes and errors as with one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rejoinder
from rejoinder.errors import DataError, ResourceError, UsageError
from rejoinder.verbs import score_processes


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rejoinder.files.jsonl.CHUNK_LINES", 7)
    monkeypatch.setattr("rejoinder.files.item_file.CHUNK_LINES", 7)


def records(count: int) -> list[dict[str, Any]]:
    """Items of two systems; some have fields that chunks of lines are not decoded with."""
    made: list[dict[str, Any]] = []
    for n in range(count):
        record: dict[str, Any] = {
            "id": str(n),
            "response": f"reply {n % 5} of many , word{n % 11} .",
            "system": "ab"[n % 2],
            "context": [f"turn {n // 4}"],
            "references": [f"reply {n % 3} of all , word{n % 7} ."] if n % 13 else [],
        }
        if n % 20 == 3:
            del record["id"]
        if n % 20 == 9:
            record["context"] = [{"role": "user", "content": "hi"}]
        if n % 20 == 15:
            record["label"] = 4
        made.append(record)
    return made


def write(path: Path, made: list[dict[str, Any]], end: str = "\n") -> Path:
    path.write_bytes("".join(json.dumps(each) + end for each in made).encode())
    return path


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("name", ["i.jsonl", "i.csv"])
def test_results_do_not_depend_on_the_number_of_processes(tmp_path: Path, name: str) -> None:
    import pandas as pd

    made = records(60)
    path = tmp_path / name
    if name.endswith("csv"):
        table = [{**each, "context": "hi", "references": "a word1 ."} for each in made]
        columns = {"response": "answer", "label": "unread"}
        pd.DataFrame(table).drop(columns="id").rename(columns=columns).to_csv(path, index=False)
    else:
        write(path, made, "\r\n")
    found = []
    for processes in (1, 2, 3):
        out = tmp_path / f"{processes}.jsonl"
        with pytest.warns(rejoinder.RejoinderWarning):
            result = rejoinder.score(
                path,
                ["bleu(n=2)", "chrf", "wer(tok=whitespace)"],
                output=out,
                keep=True,
                parts=True,
                intervals=True,
                processes=processes,
            )
        found.append((out.read_bytes(), result.to_dict(), result.columns()))
        assert len(result.ids) == 60
    assert str(found[1]) == str(found[2]) == str(found[0])


def test_items_in_memory_may_be_shared_as_well() -> None:
    one, two = (
        rejoinder.score(replies=["a b", "c"], references=["a c", "c"], metrics="wer", processes=n)
        for n in (1, 2)
    )
    assert one.columns() == two.columns()


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize(
    ("line", "change", "message"),
    [
        (17, {"response": 3}, "17: response: expected text, got"),
        (40, {"id": "2"}, "40: the id is in line 3, too"),
        (60, {"references": [{"text": "a", "weight": 2}]}, "60: references[0].weight: expected a"),
    ],
)
def test_errors_name_the_line(
    tmp_path: Path, line: int, change: dict[str, Any], message: str
) -> None:
    made = [{name: each[name] for name in each if name != "label"} for each in records(60)]
    made[line - 1] |= change
    path, out = write(tmp_path / "i.jsonl", made), tmp_path / "out.jsonl"
    for processes in (1, 2):
        with pytest.raises(DataError) as raised:
            rejoinder.score(path, "wer", output=out, processes=processes)
        assert message in str(raised.value)
        assert sorted(tmp_path.iterdir()) == [path]


def test_metrics_that_cannot_be_shared_are_refused() -> None:
    with pytest.raises(UsageError) as raised:
        rejoinder.score(replies=["a"], metrics=["distinct", "bleu", "self-bleu"], processes=2)
    assert list(raised.value.messages) == [
        f"{name} scores sets of replies; score it without processes="
        for name in ("distinct", "self-bleu")
    ]
    with pytest.raises(UsageError, match="processes=0: expected a whole number from 1 to 256"):
        rejoinder.score(replies=["a"], metrics="bleu", processes=0)


def test_texts_that_no_tokenizer_splits_are_an_error_as_with_one_process(tmp_path: Path) -> None:
    text = "これは日本語の長い文章でありまして単語に分けられません"
    path = write(tmp_path / "i.jsonl", [{"id": "1", "response": text, "references": [text]}])
    for processes in (1, 2):
        with pytest.raises(DataError, match="no item could be scored: the tokenizer"):
            rejoinder.score(path, "bleu", processes=processes)


def die(piece: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_dies_is_an_error_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(score_processes, "_score", die)
    path = write(tmp_path / "i.jsonl", records(10))
    with pytest.raises(ResourceError, match="a worker process died"):
        rejoinder.score(path, "wer", output=tmp_path / "out.jsonl", processes=2)
    assert sorted(tmp_path.iterdir()) == [path]


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(each) for each in found]


def wait_until(condition: Callable[[], Any]) -> Any:
    end = time.monotonic() + 120
    while not (value := condition()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return value


@pytest.mark.skipif(sys.platform != "linux", reason="looks for child processes in /proc")
def test_a_killed_run_leaves_neither_a_half_file_nor_processes(tmp_path: Path) -> None:
    """Its input is a pipe that never ends, so it is killed in the middle."""
    pipe, out = tmp_path / "i.jsonl", tmp_path / "out.jsonl"
    os.mkfifo(pipe)
    run = subprocess.Popen(
        [sys.executable, "-m", "rejoinder", "score", pipe, "-m", "wer", "-o", out, "--processes=2"]
    )
    with pipe.open("wb") as stream:
        line = json.dumps({"id": "{}", "response": "a b", "references": ["a c"]})
        stream.write("".join(f"{line}\n".replace("{}", str(n)) for n in range(20_000)).encode())
        stream.flush()
        workers = wait_until(lambda: len(found := children(run.pid)) > 2 and found)
        run.kill()
        run.wait()
    assert not out.exists()
    wait_until(lambda: not any(Path(f"/proc/{pid}/stat").exists() for pid in workers))
