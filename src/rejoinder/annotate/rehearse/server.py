"""The server of a rehearsal: a process of its own, whose time runs faster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec

from rejoinder.errors import ResourceError
from rejoinder.machine import use_one_thread

PROGRAM = (sys.executable, "-c", "from rejoinder.annotate.rehearse.server import main; main()")
STOP_SECONDS = 30.0


class ServerSettings(msgspec.Struct, frozen=True):
    """What the server's process is told; not by its arguments, which other users could read."""

    folder: str
    database: str | None
    speed: float


@contextmanager
def running_server(folder: Path, database: str | None, speed: float) -> Iterator[str]:
    """Serve a study on a free port of this machine; yield the address."""
    settings = ServerSettings(str(folder), database, speed)
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        )
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(msgspec.json.encode(settings) + b"\n")
            process.stdin.flush()
            address = process.stdout.readline().decode().strip()
            if not address:
                raise ResourceError(f"the server of the rehearsal did not start: {_last_line(log)}")
            yield address
        finally:
            _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


def _last_line(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "no message"


def main() -> None:
    """Run the server until its parent ends it, or ends."""
    use_one_thread()
    from rejoinder.annotate.clock import Clock
    from rejoinder.annotate.store import Store
    from rejoinder.annotate.web.serve import serve

    settings = msgspec.json.decode(sys.stdin.buffer.readline(), type=ServerSettings)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    clock = Clock(speed=settings.speed)
    store = Store.open(Path(settings.folder), settings.database, clock)

    def ready(address: str) -> None:
        sys.stdout.write(address + "\n")
        sys.stdout.flush()

    serve(store, port=0, on_ready=ready)
    store.close()


def _end_with_parent() -> None:
    """End when standard input does: the process that holds its other end is gone."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)
