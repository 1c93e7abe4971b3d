"""Start a private PostgreSQL server in a temporary folder, for one benchmark."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

PROGRAMS = ("initdb", "postgres", "psql")


def missing_programs() -> list[str]:
    """Return the programs of PostgreSQL that are not on PATH."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


class PrivatePostgres:
    """A PostgreSQL server with default settings, reached by a Unix socket only.

    PostgreSQL refuses to run as root; root starts it as the user ``postgres``.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        self._run_as: dict[str, Any] = {}
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres")
            self._run_as = {"user": "postgres", "extra_groups": []}
        self._initialize()
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                ["postgres", "-D", self.folder / "data", "-k", self.folder, "-h", ""],
                stdout=subprocess.DEVNULL,
                stderr=log,
                process_group=0,
                cwd=self.folder,
                **self._run_as,
            )
        self._wait()

    def _initialize(self) -> None:
        command = ["initdb", "-D", self.folder / "data", "-U", "postgres", "-A", "trust"]
        command += ["-E", "UTF8", "--locale", "C"]
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **self._run_as
        )

    def _wait(self, seconds: float = 60) -> None:
        until = time.monotonic() + seconds
        while True:
            try:
                self.query("SELECT 1")
                return
            except subprocess.CalledProcessError:
                if self.process.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def query(self, sql: str) -> str:
        """Return what psql prints for a query: no header, a line a row, columns parted by tabs."""
        command = ["psql", "-h", self.folder, "-U", "postgres", "-AtF", "\t", "-c", sql]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return done.stdout

    def stop(self) -> None:
        """Stop the server without waiting for its clients, and delete its folder."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)
        shutil.rmtree(self.folder)
