"""A real PostgreSQL server for tests, on a Unix socket in a temporary folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

MISSING = "PostgreSQL not found: initdb and pg_ctl must be on the PATH"


def as_server_user(command: list[str]) -> list[str]:
    """Return the command for a user other than root, as whom PostgreSQL refuses to run."""
    if os.geteuid() != 0:
        return command
    return ["runuser", "-u", "nobody", "--", *command]


@contextmanager
def running_postgres() -> Iterator[str]:
    """Start a server; yield the address of its database."""
    initdb, pg_ctl = shutil.which("initdb"), shutil.which("pg_ctl")
    if initdb is None or pg_ctl is None:
        if os.environ.get("CI") == "true":
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    with tempfile.TemporaryDirectory(prefix="rejoinder-postgres-") as name:
        folder = Path(name)
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody")
        data = folder / "data"
        quiet = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(
            as_server_user(
                [initdb, "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8"]
            ),
            cwd=folder,
            **quiet,
        )
        options = f"-k {folder} -c listen_addresses='' -c max_connections=200"
        start = [pg_ctl, "-D", str(data), "-w", "-l", str(folder / "log"), "-o", options, "start"]
        subprocess.run(as_server_user(start), cwd=folder, **quiet)
        try:
            yield f"postgresql://postgres@/postgres?host={folder}"
        finally:
            stop = [pg_ctl, "-D", str(data), "-m", "immediate", "stop"]
            subprocess.run(as_server_user(stop), cwd=folder, **quiet)
