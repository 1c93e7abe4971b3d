"""What clients can make the server keep is limited: memory, sessions, people, refused answers."""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from anyio.from_thread import start_blocking_portal
from sqlalchemy import func, select
from starlette.testclient import TestClient
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from annotate.rating_studies import items, join, make_study, open_store
from annotate.server import Server, running_server
from annotate.web.client import browser
from rejoinder.annotate import answering, schema
from rejoinder.annotate.people_store import MAX_SESSIONS
from rejoinder.annotate.store import Store
from rejoinder.annotate.web import forms
from rejoinder.annotate.web.app import make_app
from rejoinder.annotate.web.limits import Limits
from rejoinder.annotate.web.security import HEADERS
from rejoinder.annotate.web.serve import PRIVATE

OPEN = "answers_per_task = 1\n[people]\nsign_up = 'open'\n"
PLATFORM = "answers_per_task = 1\n[people]\nsign_up = 'platform'\n"
MEGABYTE = 2**20
FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"
CHUNKED = b"POST /answer HTTP/1.1\r\nHost: x\r\n" + FORM + b"Transfer-Encoding: chunked\r\n\r\n"
FLOODS = {
    "body": (
        b"POST /answer HTTP/1.1\r\nHost: x\r\n" + FORM + b"Content-Length: 104857600\r\n\r\n",
        b"x" * MEGABYTE,
    ),
    "body of unknown length": (CHUNKED, b"100000\r\n" + b"x" * MEGABYTE + b"\r\n"),
    "body nobody reads": (
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"100000\r\n" + b"x" * MEGABYTE + b"\r\n",
    ),
    "extension of a chunk": (CHUNKED + b"1;a=", b"x" * MEGABYTE),
    "trailers": (CHUNKED + b"0\r\n", b"A: b\r\n" * (MEGABYTE // 6)),
    "long trailer": (CHUNKED + b"0\r\nA: ", b"x" * MEGABYTE),
    "cookie": (b"GET / HTTP/1.1\r\nHost: x\r\nCookie: a=", b"x" * MEGABYTE),
    "headers": (b"GET / HTTP/1.1\r\nHost: x\r\n", b"A: b\r\n" * (MEGABYTE // 6)),
    "address": (b"GET /", b"x" * MEGABYTE),
    "empty lines": (b"", b"\r\n" * (MEGABYTE // 2)),
    "requests": (b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * (MEGABYTE // 36)),
    "upgrade": (
        b"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"x" * MEGABYTE,
    ),
    "tunnel": (b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", b"x" * MEGABYTE),
}
"""Beginnings of requests, and what follows a hundred times."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = make_study(tmp_path_factory.mktemp("limits") / "study", settings=OPEN)
    with running_server(folder) as started:
        yield started


def connect(server: Server) -> socket.socket:
    parts = urlsplit(server.address)
    return socket.create_connection((parts.hostname, parts.port), timeout=20)


def talk(server: Server, data: bytes) -> bytes:
    """Send bytes and return what comes back until the server closes the connection."""
    with connect(server) as connection:
        connection.sendall(data)
        received = b""
        while more := connection.recv(2**16):
            received += more
        return received


def megabytes(server: Server) -> float:
    """Return the memory of the server."""
    listed = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(server.process.pid)],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(listed.stdout) / 1024


@pytest.mark.parametrize("name", list(FLOODS))
def test_a_hundred_megabytes_are_cut_early_and_not_kept(server: Server, name: str) -> None:
    head, part = FLOODS[name]
    before, sent = megabytes(server), 0
    with connect(server) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(head)
            while sent < 100:
                connection.sendall(part)
                sent += 1
        grown = megabytes(server) - before
    assert sent < 50  # buffers of the operating system take a few
    assert grown < 40
    assert httpx.get(f"{server.address}/healthz").text == "ok"


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"\x16\x03\x01 TLS", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"), 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nCookie: " + b"x" * 40_000, 431),
    ],
)
def test_refusals_before_the_application_have_the_headers_too(
    server: Server, request_: bytes, code: int
) -> None:
    received = talk(server, request_).decode()
    assert received.startswith(f"HTTP/1.1 {code} ")
    head = received.partition("\r\n\r\n")[0]
    for name, value in HEADERS.items():
        assert f"\r\n{name}: {value}" in head
    assert "\r\nconnection: close" in head


def test_requests_in_one_packet_are_answered_one_after_the_other(server: Server) -> None:
    ask = b"%s HTTP/1.1\r\nHost: x\r\n%s\r\n"
    several = [
        (b"GET /healthz", b""),
        (b"GET /study", b""),
        (b"POST /start", b"Content-Length: 0\r\n"),
    ]
    packet = b"".join(ask % each for each in several) + ask % (
        b"GET /nowhere",
        b"Connection: close\r\n",
    )
    received = talk(server, packet)
    codes = [int(code) for code in re.findall(rb"HTTP/1.1 (\d+) ", received)]
    assert codes == [200, 403, 415, 404]


@pytest.mark.parametrize(
    "path",
    ["//outside.invalid/", "/\\outside.invalid", "http://outside.invalid/", "/%2f%2foutside.in",
     "/p/..%2f..", "/./", "/../", "/static/../answers.sqlite", "/static/%2e%2e/study.toml",
     "/static/..%5cstudy.toml", "/static/%252e%252e%252fstudy.toml", "/join;/study", "/study%00"],
)  # fmt: skip
def test_no_address_leads_outside_or_to_a_file(server: Server, path: str) -> None:
    received = talk(server, f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    code = int(received.split()[1])
    location = re.search(rb"\r\nlocation: (.*?)\r\n", received)
    assert code in (303, 400, 404)
    assert location is None or location[1] == b"/join"


def test_a_body_may_be_larger_than_a_head(server: Server) -> None:
    answer = httpx.post(f"{server.address}/answer", data={"comment": "x" * 60_000})
    assert answer.status_code == 403  # there is no session, but it was read
    answer = httpx.post(f"{server.address}/answer", data={"comment": "x" * 70_000})
    assert answer.status_code == 413


def test_sign_ups_and_guesses_by_the_thousand(server: Server) -> None:
    begin = time.monotonic()
    with httpx.Client(base_url=server.address) as client:
        token = re.search('name="csrf" value="([^"]+)"', client.get("/join").text)
        assert token is not None
        form = {"csrf": token[1], "name": "robot"}
        (visitor,) = client.cookies.items()
        client.cookies.clear()
        codes = []
        for _ in range(1000):
            sent = client.post("/join", data=form, headers={"Cookie": "=".join(visitor)})
            codes.append(sent.status_code)
            client.cookies.clear()
        paths = [f"/p/{number:022}" for number in range(1000)]
        paths += [f"/researcher/{number:032}" for number in range(500)]
        guesses = [client.get(path).status_code for path in paths]
        minutes = 1 + math.ceil((time.monotonic() - begin) / 60)  # a slow machine takes several
        assert set(codes) == {200, 429}
        assert 20 <= codes.count(200) <= 20 * minutes
        assert set(guesses) == {404, 429}
        assert 60 <= guesses.count(404) <= 60 * minutes
        if minutes == 2:  # all within one: a right guess does not help any more
            link = server.researcher.removeprefix(server.address)
            assert client.get(link).status_code == 429


def test_addresses_that_a_client_invents_are_not_believed(tmp_path: Path) -> None:
    store = open_store(make_study(tmp_path / "study", settings=PLATFORM))
    numbers = iter(range(10**6))

    def ask(app: object, forwarded: str) -> int:
        client = TestClient(app, follow_redirects=False, client=("127.0.0.1", 1))
        headers = {"X-Forwarded-For": forwarded, "X-Forwarded-Proto": "https"}
        answer = client.get(f"/join?PROLIFIC_PID={next(numbers)}", headers=headers)
        cookie = answer.headers.get("set-cookie")
        assert cookie is None or ("Secure" in cookie) == (app is proxied)
        return answer.status_code

    def app() -> Any:
        return make_app(store, limits=Limits(sign_ups=2))

    direct, proxied = app(), ProxyHeadersMiddleware(app(), PRIVATE)
    assert [ask(direct, f"192.0.2.{n}") for n in range(4)] == [303, 303, 429, 429]
    # a proxy appends the true address
    assert [ask(proxied, f"192.0.2.{n}, 198.51.100.1") for n in range(4)] == [303, 303, 429, 429]
    assert ask(proxied, "198.51.100.1, 198.51.100.2:4711") == 303
    assert [ask(proxied, f"2001:db8:1:2::{n}") for n in range(3)] == [303, 303, 429]


def count(store: Store, table: object) -> int:
    with store.database.reading() as connection:
        return connection.scalar(select(func.count()).select_from(table)) or 0


def test_sessions_of_a_person_do_not_pile_up(tmp_path: Path, address: str | None) -> None:
    store = open_store(make_study(tmp_path / "study", settings=PLATFORM), address)
    ann = join(store, "ann")
    anns = store.start_session(ann)
    for _ in range(MAX_SESSIONS + 5):
        client = browser(store, limits=Limits(sign_ups=1))
        assert client.get("/join?PROLIFIC_PID=bob").status_code == 303
    assert count(store, schema.sessions) == 1 + MAX_SESSIONS
    assert client.get("/").status_code == 200  # the latest one works
    assert store.session(anns) == (True, ann)
    for _ in range(MAX_SESSIONS + 5):
        token = store.start_session(None)
    assert count(store, schema.sessions) == 1 + 2 * MAX_SESSIONS
    assert store.session(token) == (True, None)


def test_refused_answers_do_not_pile_up(
    tmp_path: Path, address: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "MAX_NOTED", 10)
    store = open_store(make_study(tmp_path / "study", records=items(contexts=1)), address)
    ann = join(store, "ann")
    lease = store.next_step(ann).lease
    for _ in range(30):
        assert store.submit(ann, {"lease": lease.code}).outcome == "refused"
    assert count(store, schema.refusals) == 10
    with store.database.reading() as connection:
        assert connection.scalar(select(schema.people.c.refused)) == 30


def test_a_body_that_does_not_arrive_in_time_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forms, "READ_SECONDS", 0.05)
    app = make_app(open_store(make_study(tmp_path / "study", settings=OPEN)))
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.Event().wait()  # nothing comes

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/join",
        "query_string": b"",
        "scheme": "http",
        "client": ("127.0.0.1", 1),
        "headers": [
            (b"content-type", b"application/x-www-form-urlencoded"),
            (b"content-length", b"1000"),
        ],
    }
    with start_blocking_portal() as portal:  # a browser of other tests keeps the thread's loop
        portal.call(app, scope, receive, send)
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]
