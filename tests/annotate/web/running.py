"""A real server process of a study, for tests of limits, signals and browsers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CODE = """
import sys
from pathlib import Path
from rejoinder.annotate.store import Store
from rejoinder.annotate.web.serve import serve
serve(Store.open(Path(sys.argv[1])), "127.0.0.1", int(sys.argv[2]),
      lambda address: print(address, flush=True))
"""


@contextmanager
def server(folder: Path, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a server in a process of its own; yield the process and the address."""
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, str(folder), str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None and process.stderr is not None
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), process.stderr.read()
        yield process, address
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
