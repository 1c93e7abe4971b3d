"""The tour shows the real output of its commands.

REJOINDER_WRITE_TOUR=1 pytest tests/docs/test_tour.py        rewrites the page
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import socket
from pathlib import Path

import pytest

from docs.blocks import DOCS, ROOT, blocks
from rejoinder.cli.main import run

PAGE = DOCS / "tour.md"
PROGRESS = re.compile(r"^(step |training: ).*\n", re.MULTILINE)
LEARNT = ("fit", "--evaluator")
"""Commands whose last digits depend on the processor."""


def typed(words: list[str]) -> str:
    """Return the output of a command, both streams together, without progress."""
    if words[0] == "cp":
        shutil.copy(words[1], words[2])
        return ""
    assert words[0] == "rejoinder"
    screen = io.StringIO()
    with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
        code = run(words[1:])
    assert code == 0, screen.getvalue()
    lines = PROGRESS.sub("", screen.getvalue()).splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines).replace("\n\n\n", "\n\n")


def played(text: str) -> str:
    """Return a session with the output after each command."""
    commands = [line for line in text.splitlines() if line.startswith("$ ")]
    return "".join(f"{line}\n{typed(shlex.split(line[2:]))}" for line in commands)


def masked(text: str) -> str:
    """Replace digits in the output of trained models."""
    parts = re.split(r"^(?=\$ )", text, flags=re.MULTILINE)
    return "".join(
        re.sub(r"@[0-9a-f]{12}|-?[\d.]*\d", "0", part)
        if any(mark in part.partition("\n")[0] for mark in LEARNT)
        else part
        for part in parts
    )


def refuse(opened: socket.socket, address: object) -> None:
    """Fail on any connection: docs/privacy.md promises that there is none."""
    raise AssertionError(f"connection to {address}")


def test_the_tour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("src", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(socket.socket, "connect", refuse)
    text = PAGE.read_text("utf-8")
    sessions = [block for block in blocks(PAGE) if block.language == "console"]
    assert len(sessions) >= 8
    found = [played(block.text) for block in sessions]
    if os.environ.get("REJOINDER_WRITE_TOUR"):
        for block, now in zip(sessions, found, strict=True):
            text = text.replace(f"```console\n{block.text}```", f"```console\n{now}```", 1)
        PAGE.write_text(text, "utf-8")
    for block, now in zip(sessions, found, strict=True):
        assert masked(block.text) == masked(now), f"{block} shows something else"
        assert all(len(line) <= 80 for line in now.splitlines() if line.startswith(" "))  # tables
