"""``index``, ``expand`` and ``show`` as a user types them."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rejoinder.cli import main
from support import COMMAND, Run

POOL = {
    "context": [[], ["hello"], [], []],
    "utterance": ["do you like cheese", "do you like music", "where is it", "any cheese left"],
    "response": ["yes , I do", "no [really]", "over there", "none at all"],
    "split": ["train", "train", "test", "train"],
}
ITEMS = [
    {"id": "1:a", "response": "Yes, I really do!", "context": ["hi", "more cheese ?"],
     "references": [{"text": "no thanks", "weight": -0.5}], "ratings": {"ann": 4, "bob": 5}},
    {"id": "2:a", "response": "hm", "context": ["music ?"], "ratings": [1, 2]},
    {"id": "3:a", "response": "hm", "context": []},
]  # fmt: skip


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    pq.write_table(pa.table(POOL), tmp_path / "pairs.parquet")
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(one) + "\n" for one in ITEMS))


@pytest.fixture
def complaint_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Run a command that fails, in this process: its exit code, and the one line that it says."""
    monkeypatch.chdir(tmp_path)

    def start(*arguments: str) -> tuple[int, str]:
        code = main.run(list(arguments))
        (line,) = capfd.readouterr().err.splitlines()
        return code, line

    return start


def test_index_and_expand(run: Run, tmp_path: Path) -> None:
    done = run("index", "pairs.parquet", "--by", "bm25", "-o", "pool/")
    assert done.returncode == 0, done.stderr
    assert b"4" in done.stdout
    assert b"pool: bm25" in done.stderr
    done = run("expand", "items.jsonl", "--pool", "pool", "--k", "9", "-o", "out.jsonl")
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.decode().splitlines())) <= 80
    messages = done.stderr.decode()
    assert messages.count("the pool has only 4 pairs") == 1
    assert "1 items left as they were: the context has no text" in messages
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [r["text"] for r in lines[0]["references"]] == [
        "no thanks", "none at all", "yes , I do", "more cheese ?",
    ]  # fmt: skip
    assert lines[0]["references"][0]["weight"] == -0.5
    assert lines[0]["references"][3] == {"text": "more cheese ?", "source": "parrot"}
    assert lines[0]["ratings"] == {"ann": 4, "bob": 5}
    assert "references" not in lines[2]
    # straight from the pairs, from stdin, and as JSON
    stdin = (tmp_path / "items.jsonl").read_bytes()
    arguments = ["--pool", "pairs.parquet", "--by", "bm25", "--k", "9"]
    done = run("expand", "-", *arguments, "-o", "other.jsonl", "--json", stdin=stdin)
    assert (tmp_path / "other.jsonl").read_bytes() == (tmp_path / "out.jsonl").read_bytes()
    account = json.loads(done.stdout)
    assert account["retrieved"] == 3
    # a named pipe can't be read twice either
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(stdin))
    writer.start()
    assert run("expand", "pipe", *arguments, "-o", "piped.jsonl").returncode == 0
    writer.join()
    assert (tmp_path / "piped.jsonl").read_bytes() == (tmp_path / "out.jsonl").read_bytes()
    done = run("expand", "-", *arguments, "-o", "other.jsonl", stdin=b"\n{")
    assert done.stderr.startswith(b"rejoinder: stdin:2: ")
    assert account["leaks"] == {"exact": 0, "near": 0}
    done = run("expand", "items.jsonl", *arguments, "--split", "test", "-o", "o.jsonl", "--json")
    assert json.loads(done.stdout)["pairs"] == 1
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["items.jsonl", "--pool", "nothing"], 3, "nothing: cannot be read: no such file"),
        (["items.jsonl", "--pool", "items.jsonl"], 3, "not a Parquet file"),
        (["items.jsonl", "--pool", "empty.parquet"], 3, "the pool is empty"),
        (["items.jsonl", "--pool", "folder"], 3, "no index"),
        (["items.jsonl", "--pool", "pairs.parquet", "--split", "x"], 3, "no pair of the split 'x'"),
        (["items.jsonl", "--pool", "pairs.parquet", "--by", "bm52"], 2, "did you mean 'bm25'"),
        (["items.jsonl", "--pool", "pairs.parquet", "--k", "0"], 2, "--k"),
        (["items.jsonl", "--pool", "pairs.parquet", "--engine", "hive"], 2, "unknown engine"),
        (["nothing", "--pool", "pairs.parquet"], 3, "nothing: cannot be read"),
        (["words.txt", "--pool", "pairs.parquet"], 3, "words.txt: cannot be read"),
    ],
)
def test_bad_arguments_and_bad_data(
    complaint_of: Any, tmp_path: Path, arguments: list[str], code: int, complaint: str
) -> None:
    pq.write_table(pa.table(POOL).slice(0, 0), tmp_path / "empty.parquet")
    (tmp_path / "folder").mkdir()
    by = [] if "--by" in arguments or "folder" in arguments else ["--by", "bm25"]
    found, line = complaint_of("expand", *arguments, *by, "-o", "out.jsonl")
    assert found == code, line
    assert complaint in line
    assert not (tmp_path / "out.jsonl").exists()
    assert not (tmp_path / ".out.jsonl.work").exists()


def test_an_index_made_for_another_version(run: Run, tmp_path: Path) -> None:
    assert run("index", "pairs.parquet", "--by", "tfidf", "-o", "pool").returncode == 0
    manifest = json.loads((tmp_path / "pool" / "manifest.json").read_text())
    (tmp_path / "pool" / "manifest.json").write_text(json.dumps(manifest | {"format": 99}))
    done = run("expand", "items.jsonl", "--pool", "pool", "-o", "out.jsonl")
    assert done.returncode == 3
    assert b"make it anew: rejoinder index PAIRS --by SPEC -o pool" in done.stderr
    done = run("index", "pairs.parquet", "--by", "bm25", "-o", "no/such/folder")
    assert done.returncode == 2
    done = run("expand", "items.jsonl", "--pool", "pairs.parquet", "-o", "items.jsonl")
    assert done.returncode == 2
    assert b"would overwrite the input" in done.stderr


def test_a_killed_index_resumes(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(14)
    words = [f"w{i}" for i in range(2000)]
    texts = [" ".join(some) for some in rng.choice(words, size=(40_000, 5))]
    pq.write_table(pa.table({"utterance": texts, "response": texts}), tmp_path / "many.parquet")
    vectors = rng.normal(size=(2000, 100)).round(3)
    lines = [f"{w} {' '.join(map(str, v))}" for w, v in zip(words, vectors, strict=True)]
    (tmp_path / "words.txt").write_text("2000 100\n" + "\n".join(lines) + "\n")
    command = ["index", "many.parquet", "--by", 'vectors(on=both,vectors="words.txt")', "-o"]
    assert run(*command, "whole").returncode == 0
    process = subprocess.Popen([*COMMAND, *command, "pool"], cwd=tmp_path)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        begun = list((tmp_path / ".pool.work").glob("index-*/utterance.npy"))
        if begun and begun[0].stat().st_size > 6_000_000:
            break
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait(timeout=60) != 0, "the run was over before it could be killed"
    assert not (tmp_path / "pool").exists()
    done = run(*command, "pool")
    assert done.returncode == 0, done.stderr
    for name in ("utterance.npy", "response.npy"):
        one, other = (next((tmp_path / where).glob(f"*/{name}")) for where in ("whole", "pool"))
        assert one.read_bytes() == other.read_bytes()
    assert not (tmp_path / ".pool.work").exists()


@pytest.fixture
def expanded(run: Run, tmp_path: Path) -> str:
    run("expand", "items.jsonl", "--pool", "pairs.parquet", "--by", "bm25", "-o", "out.jsonl")
    return "out.jsonl"


def test_show(run: Run, expanded: str, tmp_path: Path) -> None:
    (tmp_path / "scores.jsonl").write_text(
        '{"id": "1:a", "metric": "bleu(n=2)", "value": 0.25}\n'
        '{"id": "1:a", "metric": "wer", "value": null, "unscored": "no references"}\n'
        '{"id": "2:a", "metric": "wer", "value": 0.5}\n'
    )
    done = run("show", expanded, "1:a", "--scores", "scores.jsonl")
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    assert max(map(len, text.splitlines())) <= 80
    # the reply is "Yes, I really do!"; its words in "yes , I do" match, punctuation does not
    assert "[Yes], [I] really [do]!" in text
    assert "[yes] , [I do]" in text
    assert "ann 4, bob 5, mean 4.50" in text
    assert "-.50" in text
    assert "parrot" in text
    assert ".2500" in text
    assert "no references" in text
    assert "\x1b" not in text
    shown = json.loads(run("show", expanded, "1:a", "--json").stdout)
    assert shown["matched"] == ["yes", "i", "do"]
    assert {tuple(r["matched"]) for r in shown["item"]["references"]} == {(), ("yes", "i", "do")}


def test_show_without_an_id_lists_items(run: Run, expanded: str) -> None:
    text = run("show", expanded).stdout.decode()
    assert [line.split()[0] for line in text.splitlines() if ":a" in line] == ["1:a", "2:a", "3:a"]
    listed = json.loads(run("show", expanded, "--json").stdout)
    assert [one["id"] for one in listed["items"]] == ["1:a", "2:a", "3:a"]


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["items.jsonl", "1;a"], 3, "there is no item '1;a': did you mean '1:a'"),
        (["items.jsonl", "zzzz"], 3, "'rejoinder show items.jsonl' lists its 3 items"),
        (["items.jsonl", "2:a", "--scores", "items.jsonl"], 3, "items.jsonl:1"),
        (["items.jsonl", "--scores", "items.jsonl"], 2, "give its id"),
        (["items.jsonl", "2:a", "-l", "xx"], 2, "unknown language"),
        (["nothing", "2:a"], 3, "cannot be read"),
    ],
)
def test_show_reports_missing_items_and_scores(
    complaint_of: Any, arguments: list[str], code: int, complaint: str
) -> None:
    found, line = complaint_of("show", *arguments)
    assert found == code, line
    assert complaint in line


def test_show_marks_japanese_words(run: Run, tmp_path: Path) -> None:
    one: dict[str, Any] = {
        "id": "1", "response": "今日は寒いですね", "context": ["おはよう"],
        "references": ["今日は暑い"],
    }  # fmt: skip
    (tmp_path / "ja.jsonl").write_text(json.dumps(one))
    assert "[今日は]寒いですね" in run("show", "ja.jsonl", "1", "-l", "ja").stdout.decode()
    # a tokenizer that can't split it falls back on characters, which find い as well
    assert "[今日は]寒[い]" in run("show", "ja.jsonl", "1").stdout.decode()


@pytest.mark.parametrize("no_colour", [False, True])
def test_show_on_a_terminal(tmp_path: Path, expanded: str, no_colour: bool) -> None:
    """Underlined, unless NO_COLOR asks for nothing of the kind."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    environment.pop("NO_COLOR", None)
    if no_colour:
        environment["NO_COLOR"] = "1"
    process = subprocess.Popen(
        [*COMMAND, "show", expanded, "1:a"], cwd=tmp_path, stdout=follower, env=environment
    )
    os.close(follower)
    output = b""
    while True:
        try:
            chunk = os.read(leader, 65536)
        except OSError:
            break
        if not chunk:
            break
        output += chunk
    os.close(leader)
    assert process.wait() == 0
    if no_colour:
        assert b"[Yes]" in output
    else:
        assert b"\x1b[1;4mYes\x1b[0m" in output
        assert b"[Yes]" not in output
