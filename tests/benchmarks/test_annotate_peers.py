"""The load of a study's benchmark counts what a server acknowledged, and leaves no process behind.

Potato and Label Studio are too large for a test, so a program of a few lines is answered over HTTP:
it deals items in order, writes each answer to a file, and can be told to fail.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
SERVER = """
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
items, fails_at = json.load(open("items.json")), int(sys.argv[2])
answers, done = open("answers.jsonl", "a"), {}
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply(200, json.dumps(items[done.get(self.path, 0):][:1]))
    def do_POST(self):
        answer = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        done[self.path] = done.get(self.path, 0) + 1
        if done[self.path] == fails_at:
            return self.reply(500, "disk full")
        answers.write(json.dumps([self.path[1:], *answer]) + "\\n")
        answers.flush()
        self.reply(200, "stored")
    def reply(self, code, text):
        self.send_response(code)
        self.end_headers()
        self.wfile.write(text.encode())
    def log_message(self, *arguments): pass
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import annotate_peers

    return annotate_peers


def small_program(peers: Any, fails_at: int = 0) -> Any:
    class SmallPerson(peers.Person):
        keep_alive = False

        def log_in(self) -> None:
            self._read(self.client.get(f"/{self.name}").content)

        async def _send(self, rating: int) -> None:
            await self._post(f"/{self.name}", [self.item, rating])

        async def _next(self) -> None:
            self._read((await self._get(f"/{self.name}")).content)

        def _read(self, content: bytes) -> None:
            self.item = next(iter(json.loads(content)), None)

    class SmallProgram(peers.Program):
        name = "small"

        def start(self, folder: Path, items: Mapping[str, str], port: int) -> Any:
            (folder / "items.json").write_text(json.dumps(list(items)))
            began = time.perf_counter()
            command = [sys.executable, "-c", SERVER, str(port), str(fails_at)]
            process = self.launch(command, folder, {})
            server = peers.Server(f"http://127.0.0.1:{port}", folder, [process])
            server.start_seconds = peers.first_page(server, "/") - began
            return server

        def person(self, server: Any, name: str) -> Any:
            return SmallPerson(server.url, name)

        def stored(self, server: Any) -> Any:
            lines = (server.folder / "answers.jsonl").read_text().splitlines()
            return {(person, item): rating for person, item, rating in map(json.loads, lines)}

    return SmallProgram()


def test_acknowledged_answers_are_the_stored_ones(peers: Any, tmp_path: Path) -> None:
    program = small_program(peers)
    with program.running(tmp_path, dict.fromkeys("abc", "a reply")) as server:
        load = peers.answer(program, server, people=2, seconds=60)
        stored = program.stored(server)
        (process,) = server.processes
        assert psutil.pid_exists(process.pid)
    # person p gives task n (both from 0) the rating 1 + (p + n) mod 5
    first = {("person-0", "a"): 1, ("person-0", "b"): 2, ("person-0", "c"): 3}
    second = {("person-1", "a"): 2, ("person-1", "b"): 3, ("person-1", "c"): 4}
    assert stored == load.acknowledged == first | second
    assert load.failures == []
    assert len(load.latencies) == 6
    assert load.per_second == 6 / load.seconds
    assert load.resident > 0
    assert server.start_seconds > 0
    assert process.returncode == -15  # ended by SIGTERM, and waited for
    assert not psutil.pid_exists(process.pid)


def test_a_failed_answer_is_a_failure_and_not_acknowledged(peers: Any, tmp_path: Path) -> None:
    program = small_program(peers, fails_at=2)
    with program.running(tmp_path, dict.fromkeys("abc", "a reply")) as server:
        load = peers.answer(program, server, people=1, seconds=60)
        assert program.stored(server) == load.acknowledged == {("person-0", "a"): 1}
    (failure,) = load.failures
    assert failure.startswith("person-0: AssertionError: status 500")


def test_time_and_think_time_limit_the_answers(peers: Any, tmp_path: Path) -> None:
    """Answers begin within the time only, each after the think time: at 0.0, 0.4, 0.8 s, …"""
    program = small_program(peers)
    items = {str(number): "a reply" for number in range(100)}
    with program.running(tmp_path, items) as server:
        load = peers.answer(program, server, people=1, seconds=0.9, think=0.4)
    assert 1 <= len(load.latencies) <= 3


def test_a_server_that_does_not_start_is_an_error_with_its_log(peers: Any, tmp_path: Path) -> None:
    program = small_program(peers)
    process = program.launch([sys.executable, "-c", "raise SystemExit('no disk')"], tmp_path, {})
    server = peers.Server("http://127.0.0.1:1", tmp_path, [process])
    process.wait()
    with pytest.raises(RuntimeError, match=r"no page at http://127\.0\.0\.1:1/(?s:.)*no disk"):
        peers.first_page(server, "/")
