"""What a person sees: a real pseudo-terminal of 80 columns, and a log file instead of one."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path

import pytest

from fitting.toy import QUICK, dialogues, write
from rejoinder.cli import progress as shown
from support import COMMAND

ITEMS = [
    {"id": f"{c}{s}", "context_id": str(c), "system": s, "response": f"a {s}", "references": []}
    for c in range(300)
    for s in "xy"
]


@pytest.fixture
def items(tmp_path: Path) -> Path:
    path = tmp_path / "i.jsonl"
    path.write_text("\n".join(json.dumps({**item, "references": ["a b"]}) for item in ITEMS))
    return path


def on_terminal(*arguments: str, term: str = "dumb", columns: int = 80) -> tuple[int, list[str]]:
    """Run ``rejoinder ARGUMENTS`` at a terminal: the exit code, and lines without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": term, "COLUMNS": str(columns)},
    )
    os.close(theirs)
    seen = b""
    try:
        while chunk := os.read(ours, 65536):
            seen += chunk
    except OSError:  # Linux's way to say that the other end was closed
        pass
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    return process.wait(), text.replace("\r", "").splitlines()


def test_a_terminal_gets_the_summary_not_a_flood(items: Path) -> None:
    code, lines = on_terminal("score", str(items), "-m", "bleu")
    assert code == 0
    assert len(lines) < 20
    assert any(re.search(r"\bx .*\b300\b", line) for line in lines)
    assert "add -o FILE" in lines[-1]
    code, lines = on_terminal("score", str(items), "-m", "bleu", "-o", "-")
    assert sum(line.startswith('{"id"') for line in lines) == len(ITEMS)


def test_long_messages_break_between_words(tmp_path: Path) -> None:
    """The signature of BLEU has more than 80 characters and no space: it stays whole."""
    path = tmp_path / "i.jsonl"
    path.write_text("\n".join(json.dumps(item) for item in ITEMS))
    code, lines = on_terminal("score", str(path), "-m", "bleu", term="xterm", columns=60)
    assert code == 0
    assert any(line.startswith("bleu|n:4|smooth:") and len(line) > 80 for line in lines)
    assert lines[-2:] == ["the scores of each item: add -o FILE, or -o - to see them", "here"]


@pytest.mark.parametrize("verb", ["score", "fit", "train vectors", "pairs simulate", "reply"])
def test_help_leaves_room_for_words(verb: str) -> None:
    """An option's limits once took half of the window, so that each word had a line."""
    code, lines = on_terminal(*verb.split(), "--help")
    assert code == 0
    assert max(len(line) for line in lines) <= 80
    seed = next(line for line in lines if "--seed" in line)
    assert re.search(r"--seed +N +\w+ \w+", seed), seed


def test_a_fit_draws_one_bar_after_the_other(tmp_path: Path) -> None:
    """Texts are read in the midst of a network's training: two bars at once are an error."""
    pairs = write(tmp_path / "pairs.parquet", dialogues(20))
    changes = [*QUICK, "unreferenced.form=vectors(model=minilm)", "rater.training.epochs=1"]
    code, lines = on_terminal(
        "fit", str(pairs), "--preset", "tiny", "-o", str(tmp_path / "evaluator"),
        *(word for change in changes for word in ("--set", change)), term="xterm",
    )  # fmt: skip
    seen = "\n".join(lines)
    assert code == 0, seen
    bars = ("indexing", "unreferenced: reading", "unreferenced ━", "measuring")
    assert [seen.find(bar) >= 0 for bar in bars] == [True] * 4, seen


def test_a_log_file_gets_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = iter([0.0, 10.0, 40.0, 50.0, 80.0])  # began; four pieces
    monkeypatch.setattr(shown.time, "monotonic", lambda: next(now))
    with shown.pieces_progress("encoding") as advance:
        for done in (1, 2, 3, 4):
            advance(done * 1000, 8000)
    # after 40 s a quarter is done: three times as long is left; after 80 s a half
    assert capsys.readouterr().err.splitlines() == [
        "encoding: 2,000 of 8,000, 2:00 left",
        "encoding: 4,000 of 8,000, 1:20 left",
    ]


def test_a_stream_of_unknown_length_has_no_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = iter([0.0, 31.0])
    monkeypatch.setattr(shown.time, "monotonic", lambda: next(now))
    with shown.progress("scoring", lambda: None) as advance:
        advance(1200)
    assert capsys.readouterr().err == "scoring: 1,200 items\n"
