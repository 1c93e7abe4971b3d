"""A real server of a study in a process of its own, and people who answer over HTTP."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

COMMAND = [sys.executable, "-m", "rejoinder", "annotate"]
CSRF = re.compile(r'name="csrf" value="([^"]+)"')
LEASE = re.compile(r'name="lease" value="([^"]+)"')


@dataclass(frozen=True)
class Server:
    """A running server."""

    process: subprocess.Popen[str]
    address: str
    researcher: str
    """Secret link of the researcher's page."""


@contextmanager
def running_server(folder: Path, *options: str) -> Iterator[Server]:
    """Start ``rejoinder annotate serve`` on a free port; stop it at the end."""
    process = subprocess.Popen(
        [*COMMAND, "serve", str(folder), "--port", "0", *options],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stderr is not None
    lines = []
    try:
        while "Your page:" not in "".join(lines):
            line = process.stderr.readline()
            assert line, f"the server ended: {''.join(lines)}"
            lines.append(line)
        text = "".join(lines)
        address = re.search(r" at (https?://\S+)", text)
        page = re.search(r"Your page: (\S+)", text)
        assert address is not None
        assert page is not None
        yield Server(process, address[1], page[1])
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)
        process.stderr.close()


def run_annotate(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run ``rejoinder annotate``."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False
    )


class Browser:
    """A person's browser without JavaScript: follows redirects and sends forms."""

    def __init__(self, link: str) -> None:
        self.client = httpx.Client(follow_redirects=True, timeout=30)
        self.page = self.client.get(link)
        self.address = str(self.page.url.copy_with(path="/", query=None)).rstrip("/")

    def post(self, path: str, **fields: str) -> httpx.Response:
        """Send a form with the secret of the page."""
        token = CSRF.search(self.page.text)
        assert token is not None, self.page.text
        self.page = self.client.post(self.address + path, data={"csrf": token[1], **fields})
        return self.page

    @property
    def lease(self) -> str | None:
        """The code of the task that the page shows; None if it shows none."""
        found = LEASE.search(self.page.text)
        return found[1] if found else None

    def answer_all(self, fields: Callable[[str], dict[str, str]], most: int = 1000) -> int:
        """Answer tasks until there are no more; ``fields`` fills in the form of a page."""
        count = 0
        while count < most:
            if self.lease is not None:
                self.post("/answer", lease=self.lease, seconds="3", **fields(self.page.text))
                assert self.page.status_code == 200, self.page.text
                count += 1
            elif 'action="/continue"' in self.page.text:
                self.post("/continue")
            else:
                break
        return count

    def close(self) -> None:
        self.client.close()
