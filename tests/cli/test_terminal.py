"""Output on a pseudo-terminal of 80 columns, and in a log file."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
from itertools import pairwise
from pathlib import Path

import pytest

from fitting.toy import QUICK, dialogues, write
from rejoinder.cli.monitor import TerminalMonitor, TimeLeft
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
    """Run ``rejoinder ARGUMENTS`` on a terminal; return exit code and lines without colours."""
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
    except OSError:  # Linux raises it when the other end is closed
        pass
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    return process.wait(), text.replace("\r", "").splitlines()


def test_a_terminal_shows_only_the_summary(items: Path) -> None:
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
    assert lines[-2:] == [
        "to get the score of each item, add -o FILE, or -o - to see",
        "them here",
    ]


VERBS = [
    *("fit", "score", "compare", "meta", "report", "corpus", "sample", "contexts", "join", "index"),
    *("expand", "show", "reply", "run", "ls", "explain", "demo", "datasets list"),
    *("datasets export", "train vectors", "train dapt", "train calibration"),
    *("pairs plan", "pairs fit", "pairs curve", "pairs simulate"),
]


@pytest.mark.parametrize("verb", VERBS)
def test_help_fits_80_columns(verb: str) -> None:
    code, lines = on_terminal(*verb.split(), "--help")
    assert code == 0
    assert max(len(line) for line in lines) <= 80
    assert not re.search("<(bool|str|int|float|path)", "".join(lines))


@pytest.mark.parametrize("verb", ["score", "fit", "train vectors", "pairs simulate", "reply"])
def test_limits_of_an_option_leave_room_for_its_help(verb: str) -> None:
    code, lines = on_terminal(*verb.split(), "--help")
    assert code == 0
    assert max(len(line) for line in lines) <= 80
    seed = next(line for line in lines if "--seed" in line)
    assert re.search(r"--seed +N +\w+ \w+", seed), seed


def test_a_fit_draws_one_bar_after_the_other(tmp_path: Path) -> None:
    """Texts are read during a network's training; two bars at once would be an error."""
    pairs = write(tmp_path / "pairs.parquet", dialogues(20))
    changes = [*QUICK, "unreferenced.input=vectors(model=minilm)", "rater.training.epochs=1"]
    code, lines = on_terminal(
        "fit", str(pairs), "--preset", "tiny", "-o", str(tmp_path / "evaluator"),
        *(word for change in changes for word in ("--set", change)), term="xterm",
    )  # fmt: skip
    seen = "\n".join(lines)
    assert code == 0, seen
    bars = ("indexing", "unreferenced: encoding", "unreferenced ━", "measuring")
    assert [seen.find(bar) >= 0 for bar in bars] == [True] * 4, seen


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("rejoinder.cli.monitor.time.monotonic", made)
    return made


def test_a_log_file_gets_a_line_every_half_minute(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with TerminalMonitor().pieces("encoding") as advance:
        for done in range(9):
            advance(done * 1000, 8000)
            clock.now += 10
    # 1,000 pieces take 10 s; the first report, of 1,000 after 10 s, is the start
    assert capsys.readouterr().err.splitlines() == [
        "encoding: 3,000 of 8,000, 0:50 left",
        "encoding: 6,000 of 8,000, 0:20 left",
    ]


def test_a_stream_of_unknown_length_has_no_time_left(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with TerminalMonitor().stream("scoring", lambda: None) as advance:
        clock.now = 31
        advance(1200)
    assert capsys.readouterr().err == "scoring: 1,200 items\n"


def test_the_time_left_is_steady() -> None:
    """A slow start is not extrapolated, and a pause moves the estimate slowly."""
    clock = Clock()
    left = TimeLeft(clock)
    clock.now = 30  # loading a model
    assert left.estimate(0.001) is None
    clock.now = 31
    assert left.estimate(0.002) is None  # too little to go by
    estimates = []
    for second in range(1, 50):
        clock.now = 31 + second + (5 if second > 25 else 0)  # 1 % a second, and a pause of 5 s
        estimates.append((second, left.estimate(0.002 + second / 100)))
    known = [(second, seconds) for second, seconds in estimates if seconds is not None]
    assert known[0][0] == 4  # 5 s after the first report
    for second, seconds in known:
        assert abs(seconds - (99.8 - second)) < 25, (second, seconds)
    jumps = [abs(b[1] - a[1]) for a, b in pairwise(known)]
    assert max(jumps) < 12
