"""An OpenAI-compatible server on loopback that fails as it is told, and counts what it is asked.

A plan says for each chat, by its last turn, what happens at the first, second, … request; after its
end the chat is answered. Each action is a function of the handler.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Action = Callable[["Handler"], None]


class Server(ThreadingHTTPServer):
    """The server with its plan and its counts."""

    daemon_threads = True

    def __init__(self, plan: Mapping[str, Sequence[Action]], say: Callable[[Any], str]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.plan, self.say = plan, say
        self.lock = threading.Lock()
        self.asked: Counter[str] = Counter()
        """Requests by last turn."""
        self.answered: Counter[bytes] = Counter()
        """Answers by everything that was sent."""
        self.times: list[float] = []
        self.bodies: list[dict[str, Any]] = []
        self.keys: set[str | None] = set()
        self.under_way = self.most_under_way = 0
        self.delay = 0.0
        """Seconds that each answer takes."""
        self.upstream: str | None = None
        """The address of a server to which chats are passed on, up to /v1."""
        self.key: str | None = None
        """The key that is accepted; None accepts any."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is no news."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        self.body = json.loads(raw)
        self.turn = self.body["messages"][-1]["content"]
        self.raw = raw
        with self.server.lock:
            number = self.server.asked[self.turn]
            self.server.asked[self.turn] += 1
            self.server.times.append(time.monotonic())
            self.server.bodies.append(self.body)
            self.server.keys.add(self.headers["Authorization"])
            self.server.under_way += 1
            self.server.most_under_way = max(self.server.most_under_way, self.server.under_way)
        try:
            actions = self.server.plan.get(self.turn, ())
            if self.path != "/v1/chat/completions":
                status(404, error="no such page")(self)
            elif self.server.key and self.headers["Authorization"] != f"Bearer {self.server.key}":
                status(401, error=f"wrong key: {self.headers['Authorization']}")(self)
            else:
                (actions[number] if number < len(actions) else answer)(self)
        finally:
            with self.server.lock:
                self.server.under_way -= 1

    def send(self, code: int, body: bytes, **headers: str) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def completion(text: str | None, **choice: Any) -> bytes:
    message = {"role": "assistant", "content": text}
    return json.dumps(
        {
            "model": "planted",
            "choices": [{"message": message, "finish_reason": "stop"} | choice],
            "usage": {"prompt_tokens": 7, "completion_tokens": 5},
        }
    ).encode()


def answer(handler: Handler) -> None:
    time.sleep(handler.server.delay)
    if handler.server.upstream is not None:
        body = forward(handler)
    else:
        body = completion(handler.server.say(handler.body))
    with handler.server.lock:
        handler.server.answered[handler.raw] += 1
    handler.send(200, body)


def forward(handler: Handler) -> bytes:
    """Let the server behind this one answer."""
    request = urllib.request.Request(
        f"{handler.server.upstream}{handler.path}",
        handler.raw,
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=120) as response:
        body: bytes = response.read()
    return body


def status(code: int, error: str | None = None, **headers: str) -> Action:
    body = json.dumps({"error": {"message": error}}).encode() if error else b"<html>oops"
    return lambda handler: handler.send(code, body, **headers)


def text(content: str | None, **choice: Any) -> Action:
    return lambda handler: handler.send(200, completion(content, **choice))


def raw(body: bytes) -> Action:
    return lambda handler: handler.send(200, body)


def cut(handler: Handler) -> None:
    """Send half of an answer, then reset the connection."""
    handler.send_response(200)
    handler.send_header("Content-Length", "500")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [{"mess')
    handler.wfile.flush()
    linger = struct.pack("ii", 1, 0)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.connection.close()
    handler.close_connection = True


def slow(seconds: float) -> Action:
    def act(handler: Handler) -> None:
        time.sleep(seconds)
        handler.send(200, completion("too late"))

    return act


def drip(seconds: float) -> Action:
    """Send a byte from time to time: no single read takes long, but the answer does."""

    def act(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        for _ in range(int(seconds / 0.1)):
            handler.wfile.write(b" ")
            time.sleep(0.1)
        handler.close_connection = True

    return act


def say_back(body: Any) -> str:
    return f"You said: {body['messages'][-1]['content']} ({body.get('seed')})"


@contextmanager
def planted_server(
    plan: Mapping[str, Sequence[Action]] | None = None, say: Callable[[Any], str] = say_back
) -> Iterator[Server]:
    server = Server(plan or {}, say)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def killed(arguments: list[str], server: Server, answers: int, folder: Path) -> int:
    """Kill a command, without mercy, after so many answers; return how many there are then."""
    code = "from rejoinder.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env={**os.environ, "REJOINDER_CACHE": str(folder / "cache")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    server.delay = 0.1
    deadline = time.monotonic() + 120
    while sum(server.answered.values()) < answers and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    server.delay = 0
    return sum(server.answered.values())


def unused_url() -> str:
    """An address at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
