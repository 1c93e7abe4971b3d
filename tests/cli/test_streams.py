"""Pipes that break, streams that are closed, terminals that can't show everything, hang-ups."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support import COMMAND, Run

ITEMS = [
    {
        "id": f"{c}{s}",
        "context_id": str(c),
        "system": s,
        "response": f"a b {c} {s}",
        "references": ["a b é"],
    }
    for c in range(4)
    for s in ("x", "ÿ日本")
]
PROGRAM = shlex.join(COMMAND)


@pytest.fixture
def shell(tmp_path: Path):  # type: ignore[no-untyped-def]
    """Run a line of bash; ``rejoinder`` in it is the program."""
    (tmp_path / "i.jsonl").write_text("\n".join(json.dumps(item) for item in ITEMS))

    # as for most people: what waits in a buffer can still fail when the process ends
    buffered = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}

    def start(line: str, **env: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["bash", "-c", "set -o pipefail; " + line.replace("rejoinder", PROGRAM)],
            capture_output=True,
            cwd=tmp_path,
            env={**buffered, **env},
            timeout=120,
            check=False,
        )

    return start


@pytest.mark.parametrize(
    "line",
    [
        "rejoinder compare i.jsonl -m chrf | head -1",
        "rejoinder compare i.jsonl -m chrf 2>&1 | head -1",
        "rejoinder ls | true",
        "rejoinder ls --json | true",
        "rejoinder --help | true",
        "rejoinder explain bleu | true",
    ],
)
def test_a_reader_that_goes_away_is_no_error(shell, line: str) -> None:  # type: ignore[no-untyped-def]
    done = shell(line)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("rejoinder score - -m bleu <&-", b"rejoinder: stdin is closed"),
        ("rejoinder score i.jsonl -m bleu >&-", b"rejoinder: stdout is closed"),
        ("rejoinder ls >&-", b"rejoinder: stdout is closed"),
        ("rejoinder ls >/dev/full", b"rejoinder: stdout: cannot be written: no space left"),
        ("rejoinder score i.jsonl -m bleu >/dev/full", b"rejoinder: stdout: cannot be written: no"),
    ],
)
def test_streams_that_cannot_be_used(shell, line: str, said: bytes) -> None:  # type: ignore[no-untyped-def]
    done = shell(line)
    assert done.returncode == 2
    assert done.stderr.startswith(said)
    assert done.stderr.count(b"\n") == 1


def test_without_stderr_the_work_is_done(shell) -> None:  # type: ignore[no-untyped-def]
    assert shell("rejoinder compare i.jsonl -m chrf 2>&-").returncode == 0


@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full"])
def test_the_exit_code_does_not_depend_on_stderr(shell, stderr: str) -> None:  # type: ignore[no-untyped-def]
    for line, code in [("score i.jsonl -m bleu", 0), ("nope", 2), ("compare nope S", 3)]:
        assert shell(f"rejoinder {line} {stderr}").returncode == code


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_terminals_that_cannot_show_everything(shell, encoding: str) -> None:  # type: ignore[no-untyped-def]
    for line in ("compare i.jsonl -m chrf", "explain bleu", "ls", "score i.jsonl -m chrf -o é日"):
        done = shell(f"rejoinder {line}", PYTHONIOENCODING=encoding)
        assert done.returncode == 0, done.stderr
        done.stdout.decode(encoding)
    done = shell("rejoinder score 日本.jsonl -m chrf", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr.count(b"\n")) == (3, 1)


def test_a_named_pipe_without_a_reader(shell, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    os.mkfifo(tmp_path / "pipe")
    done = shell("rejoinder score i.jsonl -m chrf -o pipe")
    assert done.returncode == 2
    assert done.stderr.decode().splitlines() == [
        "rejoinder: pipe: nobody opened this pipe for reading within 10 seconds;"
        " start its reader first"
    ]


def test_a_named_pipe_whose_reader_comes_later(shell, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """The scores are far more than a pipe holds at a time, so the writer has to wait."""
    os.mkfifo(tmp_path / "pipe")
    many = "".join(json.dumps(ITEMS[0] | {"id": n}) + "\n" for n in range(3000))
    (tmp_path / "many.jsonl").write_text(many)
    line = (
        "rejoinder score many.jsonl -m chrf -o pipe & sleep 3; (sleep 1; cat) < pipe > s; wait $!"
    )
    assert shell(line).returncode == 0
    scores = [json.loads(line) for line in (tmp_path / "s").read_text().splitlines()]
    assert [s["id"] for s in scores if s.get("level", "item") == "item"] == list(
        map(str, range(3000))
    )
    assert shell("rejoinder score i.jsonl -m chrf -o >(cat > t); sleep 1").returncode == 0
    assert (tmp_path / "t").read_bytes()


@pytest.mark.parametrize("ignored", [False, True])
def test_a_hang_up_ends_the_run_unless_nohup_says_no(tmp_path: Path, ignored: bool) -> None:
    os.mkfifo(tmp_path / "items.jsonl")
    process = subprocess.Popen(
        [*COMMAND, "score", "items.jsonl", "-m", "bleu", "-o", "scores.jsonl"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(
            signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL
        ),
    )
    with open(tmp_path / "items.jsonl", "wb") as pipe:
        pipe.write(json.dumps(ITEMS[0]).encode())
        pipe.flush()
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob(".scores*")) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGHUP)
        if not ignored:
            assert process.wait(timeout=60) == 128 + signal.SIGHUP
    assert process.wait(timeout=60) == (0 if ignored else 128 + signal.SIGHUP)
    left = {"items.jsonl", "scores.jsonl"} if ignored else {"items.jsonl"}
    assert set(os.listdir(tmp_path)) == left


def test_a_signal_that_a_library_swallows_comes_again() -> None:
    """ctypes drops exceptions of its callbacks, as compilers' callbacks do."""
    code = """
import ctypes, os, signal, time
from rejoinder.cli import main
main.CLEANING_UP = 1
signal.signal(signal.SIGTERM, main._leave)
ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.SIGTERM) or time.sleep(0.1))()
print("swallowed", flush=True)
time.sleep(60)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=50)
    assert (done.stdout, done.returncode) == (b"swallowed\n", 128 + signal.SIGTERM)


@pytest.mark.parametrize(
    "option", [["--seed", str(2**63)], ["--seed", "-1"], ["--resamples", "1000001"]]
)
def test_numbers_out_of_range_are_refused(run: Run, option: list[str]) -> None:
    done = run("score", "-", "-m", "bleu", *option)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert option[0].encode() in done.stderr


def test_the_largest_seed_works(run: Run) -> None:
    stdin = b"\n".join(json.dumps(item).encode() for item in ITEMS)
    for verb in ("score", "compare"):
        done = run(verb, "-", "-m", "bleu", "--seed", str(2**63 - 1), stdin=stdin)
        assert done.returncode == 0, done.stderr
