"""The command ``rejoinder corpus``: reports, bad input, interruptions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from archive import make_archive

from rejoinder.cli import main
from support import COMMAND, Run


def test_logs_to_pairs(run: Run, tmp_path: Path) -> None:
    truth = make_archive(tmp_path / "tweets.jsonl.zst", 1500, seed=1)
    done = run("corpus", "tweets.jsonl.zst", "--format", "twitter", "-o", "pairs.parquet")
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    assert max(map(len, text.splitlines())) <= 80
    assert f"{len(truth.pairs):,}" in text
    assert b"\xe2\x96" not in done.stderr  # no bars outside a terminal
    manifest = json.loads((tmp_path / "pairs.manifest.json").read_text())
    assert manifest["pairs"] == len(truth.pairs)
    assert manifest["records"] == len(truth.posts)
    assert manifest["settings"]["format"] == "twitter"
    assert set(manifest["inputs"]) == {"tweets.jsonl.zst"}
    assert pq.read_table(tmp_path / "pairs.parquet").num_rows == len(truth.pairs)
    done = run("corpus", "tweets.jsonl.zst", "-f", "twitter", "-o", "pairs.parquet", "--json")
    assert json.loads(done.stdout)["pairs"] == len(truth.pairs)


def test_stdin_and_files_can_be_combined(run: Run, tmp_path: Path) -> None:
    """Next to a second input, too: each is read by a process of its own."""
    one, other = "did you sleep well\tyes, very well\n", "how was school today\tboring as ever\n"
    (tmp_path / "log.tsv").write_text(one)
    done = run("corpus", "-", "log.tsv", "-f", "tsv", "-o", "p.parquet", stdin=other.encode())
    assert done.returncode == 0, done.stderr
    pairs = pq.read_table(tmp_path / "p.parquet").to_pylist()
    assert {pair["utterance"] for pair in pairs} == {"did you sleep well", "how was school today"}
    assert {path.name for path in tmp_path.iterdir()} == {"log.tsv", "p.parquet", "p.manifest.json"}


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["log", "-f", "tweeter"], 2, "unknown log format 'tweeter': did you mean 'twitter'"),
        (["log", "-f", "tsv", "--off", "shrt"], 2, "unknown filter 'shrt': did you mean 'short'"),
        (["log", "-f", "tsv", "--split", "1,2"], 2, "add up to 1"),
        (["log", "-f", "tsv", "--split-at", "tomorrow"], 2, "--split"),
        (["log", "-f", "tsv", "--engine", "hive"], 2, "unknown engine 'hive'"),
        (["log", "-f", "tsv", "-l", "xx"], 2, "'xx'"),
        (["log", "-f", "tsv", "--exclude", "nothing"], 2, "nothing: cannot be read"),
        (["log", "-f", "tsv", "-o", "no/such/p.parquet"], 2, "cannot be written"),
        (["nothing", "-f", "tsv"], 3, "nothing: cannot be read: no such file"),
        (["empty", "-f", "twitter"], 3, "empty: there is no post in it; is --format right?"),
        (["log", "-f", "twitter"], 3, "log:1: broken JSON"),
        (["edge", "-f", "messages", "--split-at", "2020-01-01"], 3, "edge:1: time: '9999-12-31"),
        (
            ["log", "-f", "tsv", "--split-at", "9999-12-31T23:59:59-23:59"],
            2,
            "is not between the years 1 and 9999 in UTC",
        ),
        (["log", "-f", "tsv", "--split-at", "0001-01-01T00:00:00+23:00"], 2, "1 and 9999 in UTC"),
        (["log", "-f", "tsv", "--learn-from", "user"], 2, "the format 'tsv' has no roles"),
        (["chat", "-f", "chat"], 3, "--learn-from assistant"),
        (["log", "-f", "twitter", "--strict"], 3, "log:1: broken JSON"),
        (
            ["log", "-f", "tsv", "--engine", "spark://127.0.0.1:9"],
            4,
            "cannot reach the Spark master",
        ),
    ],
)
def test_bad_arguments_and_bad_data(
    run: Run, tmp_path: Path, arguments: list[str], code: int, complaint: str
) -> None:
    (tmp_path / "log").write_text("good morning everybody\tgood morning to you\n")
    (tmp_path / "empty").write_text("")
    message = {"dialogue_id": 1, "speaker": "a", "text": "hi", "time": "9999-12-31T23:59:59-23:59"}
    (tmp_path / "edge").write_text(json.dumps(message) + "\n")
    turns = [{"role": "user", "content": "hi you"}, {"role": "assistant", "content": "hello"}]
    (tmp_path / "chat").write_text(json.dumps({"messages": turns}) + "\n")
    output = [] if "-o" in arguments else ["-o", "p.parquet"]
    done = run("corpus", *arguments, *output)
    assert done.returncode == code, done.stderr
    assert complaint in done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert done.stderr.count(b"\n") == 1
    rejects = {"p.rejects.jsonl"} if "broken" in complaint or "time:" in complaint else set()
    if "--strict" in arguments:
        rejects = set()
    assert {path.name for path in tmp_path.iterdir()} == {"log", "empty", "edge", "chat", *rejects}


def test_wrong_arguments_are_reported_all_at_once(run: Run) -> None:
    done = run("corpus", "log", "-f", "x", "-l", "xx", "--split", "1", "-o", "p.parquet")
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 3


def test_a_log_with_nul_bytes_is_read(run: Run, tmp_path: Path) -> None:
    turns = [{"role": r, "content": f"good \0 morning {r}"} for r in ("assistant", "user")]
    (tmp_path / "chat").write_text(json.dumps({"messages": turns}) + "\n")
    done = run("corpus", "chat", "-f", "chat", "-o", "p.parquet", "--json")
    assert done.returncode == 0, done.stderr
    (pair,) = pq.read_table(tmp_path / "p.parquet").to_pylist()
    assert (pair["utterance"], pair["response"]) == ("good morning assistant", "good morning user")


def test_records_before_the_damage_of_a_file_are_used(run: Run, tmp_path: Path) -> None:
    make_archive(tmp_path / "whole.jsonl.gz", 3000, seed=2)
    packed = (tmp_path / "whole.jsonl.gz").read_bytes()
    (tmp_path / "cut.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    done = run("corpus", "cut.jsonl.gz", "-f", "twitter", "-o", "p.parquet", "--json")
    assert done.returncode == 0, done.stderr
    account = json.loads(done.stdout)
    assert 1000 < account["records"] < 2000
    assert any("cut off" in reason for reason in account["rejects"])


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_run_resumes(run: Run, tmp_path: Path, kind: signal.Signals) -> None:
    paths = []
    for k in range(6):
        make_archive(tmp_path / f"{k}.jsonl.gz", 4000, seed=k)
        paths.append(f"{k}.jsonl.gz")
    command = ["corpus", *paths, "-f", "twitter", "--salt", "s", "-o"]
    process = subprocess.Popen(
        [*COMMAND, *command, "p.parquet"], cwd=tmp_path, stderr=-3, stdout=-3
    )
    work = tmp_path / ".p.parquet.work"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if len(list(work.rglob("*.parquet"))) >= 2:
            break
        time.sleep(0.02)
    process.send_signal(kind)
    assert process.wait(timeout=60) != 0, "the run was over before it could be killed"
    assert not (tmp_path / "p.parquet").exists()
    before = {path: path.stat().st_mtime_ns for path in work.rglob("*.parquet")}
    assert before
    done = run(*command, "p.parquet")
    assert done.returncode == 0, done.stderr
    assert run(*command, "q.parquet").returncode == 0
    assert (tmp_path / "p.parquet").read_bytes() == (tmp_path / "q.parquet").read_bytes()
    assert not work.exists()


def test_a_full_disk_is_named(run: Run, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small disk")
    try:
        make_archive(tmp_path / "tweets.jsonl", 30000, seed=1, simple=True)
        done = run("corpus", "tweets.jsonl", "-f", "twitter", "-o", "disk/p.parquet")
        assert done.returncode == 4, done.stderr
        assert b"Traceback" not in done.stderr
        assert b"full" in done.stderr
        assert not (disk / "p.parquet").exists()
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_chat_of_one_role_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    turns = [{"role": "assistant", "content": text} for text in ("hello there", "how are you")]
    (tmp_path / "c.jsonl").write_text(json.dumps({"messages": turns}) + "\n")
    output = str(tmp_path / "p.parquet")
    assert main.run(["corpus", str(tmp_path / "c.jsonl"), "-f", "chat", "-o", output]) == 0
    assert "warning: there are 0 pairs" in (err := capsys.readouterr().err)
    assert "--learn-from" in err
