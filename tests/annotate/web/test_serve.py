"""A real server: ports, signals, and requests that no browser sends."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from annotate.web.client import hidden_fields
from annotate.web.kinds import study
from annotate.web.running import server
from rejoinder.annotate.web import protocol
from rejoinder.annotate.web.serve import PRIVATE, address_of, listen, serve
from rejoinder.errors import ResourceError, UsageError

MEGABYTE = b"x" * 2**20


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("served") / "s"
    store = study(folder, "rate", tables="[people]\nsign_up = 'open'\n")
    store.close()
    with server(folder) as (_, found):
        yield found


def connect(address: str) -> socket.socket:
    parts = urlsplit(address)
    return socket.create_connection((parts.hostname, parts.port), timeout=20)


def talk(address: str, *parts: bytes) -> bytes:
    """Send bytes and return everything that comes back until the server closes."""
    with connect(address) as connection:
        for part in parts:
            connection.sendall(part)
        received = b""
        while more := connection.recv(2**16):
            received += more
        return received


def sent_before_cut(address: str, head: bytes, part: bytes, count: int = 100) -> tuple[int, bytes]:
    """Send a large body part by part; return how many parts went out, and the first response."""
    with connect(address) as connection:
        connection.sendall(head)
        sent, response = 0, b""
        with suppress(OSError):
            while sent < count:
                connection.sendall(part)
                sent += 1
        with suppress(OSError):
            response = connection.recv(2**16)
        return sent, response


def test_a_person_answers_over_http(address: str) -> None:
    with httpx.Client(base_url=address, follow_redirects=True) as client:
        form = {**hidden_fields(client.get("/").text), "name": "ann"}
        assert client.post("/join", data=form).status_code == 200
        client.post("/start", data=hidden_fields(client.get("/").text))
        form = {**hidden_fields(client.get("/").text), "fit-0": "5"}
        response = client.post("/answer", data=form, follow_redirects=False)
        assert response.headers["rejoinder-answer"] == "stored"
        assert "server" not in response.headers
        assert client.get("/healthz").text == "ok"


def test_a_body_of_100_megabytes_is_cut_early(address: str) -> None:
    head = (
        b"POST /answer HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        b"Content-Length: 104857600\r\n\r\n"
    )
    parts, response = sent_before_cut(address, head, MEGABYTE)
    assert parts < 30
    assert not response or response.startswith(b"HTTP/1.1 413")


def test_a_body_of_unknown_length_is_cut_early(address: str) -> None:
    for path in (b"/answer", b"/join"):
        head = (
            b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
            b"Content-Type: application/x-www-form-urlencoded\r\n\r\n"
        )
        parts, response = sent_before_cut(address, head, b"100000\r\n" + MEGABYTE + b"\r\n")
        assert parts < 30
        assert not response or response.startswith(b"HTTP/1.1 413")


def test_a_declared_length_that_is_too_large_is_refused_with_a_page(address: str) -> None:
    for length in (b"70000", b"99999999999999999999"):
        received = talk(
            address,
            b"POST /answer HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded"
            b"\r\nContent-Length: " + length + b"\r\n\r\n",
        )
        assert received.startswith((b"HTTP/1.1 413", b"HTTP/1.1 400"))
        assert length != b"70000" or b"The answer is too large" in received


def test_a_head_that_is_too_large_is_cut(address: str) -> None:
    for head, part in ((b"GET /", b"a" * 50_000), (b"GET / HTTP/1.1\r\n", b"A: b\r\n" * 10_000)):
        parts, response = sent_before_cut(address, head, part, 1000)
        assert parts < 200
        assert not response or response.startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /p/\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00 not HTTP\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /answer HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /answer HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
    ],
)
def test_what_is_not_http_is_refused(address: str, request_: bytes) -> None:
    assert talk(address, request_).startswith(b"HTTP/1.1 400")
    assert httpx.get(f"{address}/healthz").text == "ok"


@pytest.mark.parametrize(
    "header",
    [
        b"Cookie: rejoinder-x=\xff\xfe; a=b; =; ;;",
        b"Host: [",
        b"Host: a b",
        b"Sec-Fetch-Site: \xff",
        b"Content-Type: \xff\xfe",
        b"Rejoinder-Request: \xff",
        b"Upgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Key: x",
    ],
)
def test_strange_headers_give_no_fault(address: str, header: bytes) -> None:
    for start in (b"GET /join HTTP/1.1", b"POST /join HTTP/1.1\r\nContent-Length: 0"):
        received = talk(address, start + b"\r\nConnection: close\r\n" + header + b"\r\n\r\n")
        code = received.split()[1]
        assert code in (b"200", b"303", b"400", b"403", b"415"), received


def test_a_head_that_does_not_arrive_in_time_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def app(scope, receive, send) -> None:
        raise AssertionError("no request arrives")

    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.2)
    config = uvicorn.Config(
        app, http=protocol.LimitedProtocol, ws="none", lifespan="off", log_level="error"
    )
    running = uvicorn.Server(config)
    with listen("127.0.0.1", 0) as listening:
        where = address_of(listening, "127.0.0.1")
        thread = threading.Thread(
            target=lambda: asyncio.run(running.serve(sockets=[listening.dup()]))
        )
        thread.start()
        try:
            assert talk(where, b"GET / HT") == b""  # returns when the server closes
        finally:
            running.should_exit = True
            thread.join()


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    store = study(tmp_path / "s", "rate")
    with listen("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} is in use by another program"):
            serve(store, "127.0.0.1", port)


@pytest.mark.parametrize(
    "host, port, message",
    [
        ("127.0.0.1", 70000, "expected a number from 0 to 65535"),
        ("no.such.host.invalid", 0, "there is no host 'no.such.host.invalid'"),
        ("a" * 300, 0, "there is no host"),
        ("192.0.2.1", 0, "this machine does not have that address"),
    ],
)
def test_places_where_nobody_can_listen(host: str, port: int, message: str) -> None:
    with pytest.raises(UsageError, match=message), listen(host, port):
        pass


def test_responses_are_sent_at_once() -> None:
    """Asyncio switches Nagle's algorithm off for sockets that are declared as TCP; with it, a
    response in two packets waits 40 ms for the browser's acknowledgement."""
    with listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP


def test_addresses_that_a_browser_opens() -> None:
    with listen("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        for host, expected in (
            ("0.0.0.0", f"http://127.0.0.1:{port}"),
            ("::", f"http://[::1]:{port}"),
            ("::1", f"http://[::1]:{port}"),
            ("study.local", f"http://study.local:{port}"),
        ):
            assert address_of(listening, host) == expected


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_the_server_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "s"
    study(folder, "rate").close()
    with server(folder) as (process, address):
        with httpx.Client(base_url=address) as idle:  # an open connection does not delay the end
            assert idle.get("/healthz").text == "ok"
            process.send_signal(number)
            assert process.wait(20) == 0
        assert process.stderr.read() == ""


def test_one_server_for_a_study(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    store = study(folder, "rate")
    expected = pytest.raises(ResourceError, match="another server uses this database")
    with server(folder), expected:
        serve(store, "127.0.0.1", 0)


@pytest.mark.parametrize(
    "peer, forwarded, expected",
    [
        ("127.0.0.1", "203.0.113.7", "203.0.113.7"),
        ("10.1.2.3", "198.51.100.1, 203.0.113.7", "203.0.113.7"),  # the first is made up
        ("192.168.0.2", "203.0.113.7, 10.0.0.9", "203.0.113.7"),  # two proxies
        ("198.51.100.9", "203.0.113.7", "198.51.100.9"),  # not a proxy of ours
        ("127.0.0.1", "", "127.0.0.1"),
    ],
)
def test_the_address_of_a_client_behind_a_proxy(peer: str, forwarded: str, expected: str) -> None:
    seen: list[str] = []

    async def app(scope, receive, send) -> None:
        seen.append(scope["client"][0])

    headers = [(b"x-forwarded-for", forwarded.encode())]
    scope = {"type": "http", "client": (peer, 1), "headers": headers, "scheme": "http"}
    with ThreadPoolExecutor(1) as pool:  # Playwright's event loop may run in this thread
        pool.submit(
            lambda: asyncio.run(ProxyHeadersMiddleware(app, PRIVATE)(scope, None, None))
        ).result()
    assert seen == [expected]


def test_a_slow_body_does_not_hold_up_others(address: str) -> None:
    head = (
        b"POST /join HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        b"Content-Length: 1000\r\n\r\nname="
    )
    slow = [connect(address) for _ in range(60)]
    try:
        for connection in slow:
            connection.sendall(head)
        time.sleep(0.2)
        assert httpx.get(f"{address}/healthz", timeout=10).text == "ok"
    finally:
        for connection in slow:
            connection.close()
    assert httpx.get(f"{address}/healthz", timeout=10).text == "ok"
