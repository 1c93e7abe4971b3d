"""Real command lines: the program as a user starts it, in a process of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from support import COMMAND, Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run ``rejoinder ARGUMENTS`` in an empty folder."""

    def start(
        *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*COMMAND, *arguments],
            input=stdin,
            capture_output=True,
            cwd=tmp_path,
            env={**os.environ, **(env or {})},
            timeout=300,
            check=False,
        )

    return start
