"""Run the server of a study."""

from __future__ import annotations

import errno
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rejoinder.errors import UsageError, missing_extra

if TYPE_CHECKING:
    from rejoinder.annotate.store import Store

GRACE_SECONDS = 10
KEEP_ALIVE_SECONDS = 65
BACKLOG = 2048
PRIVATE = ["127.0.0.0/8", "::1", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"]
"""Where a proxy may be. Of the addresses that it forwards, the last one from elsewhere counts:
those before it may be made up by the client."""


def serve(
    store: Store,
    host: str = "127.0.0.1",
    port: int = 8000,
    on_ready: Callable[[str], None] | None = None,
    *,
    base_address: str | None = None,
    behind_proxy: bool = False,
) -> None:
    """Serve a study until the process is told to end (SIGTERM, SIGINT).

    Port 0 takes a free one; ``on_ready`` is called with the address once people can connect.
    ``behind_proxy`` believes the headers in which a proxy on this machine or in the same private
    network tells the addresses of clients.
    """
    try:
        import uvicorn
    except ModuleNotFoundError:
        raise missing_extra("annotate", "uvicorn", task="the server of a study") from None
    from rejoinder.annotate.web.app import make_app
    from rejoinder.annotate.web.protocol import LimitedProtocol

    class Server(uvicorn.Server):
        """Tells when people can connect."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started and on_ready is not None:
                on_ready(base_address or address_of(listening, host))

    with store.database.only_server(), listen(host, port) as listening:
        config = uvicorn.Config(
            make_app(store, base_address=base_address),
            http=LimitedProtocol,
            ws="none",
            lifespan="off",
            log_level="error",
            access_log=False,  # addresses hold secret links
            server_header=False,
            proxy_headers=behind_proxy,
            forwarded_allow_ips=PRIVATE if behind_proxy else None,
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        with _ending_quietly():
            Server(config).run(sockets=[listening])


@contextmanager
def listen(host: str, port: int) -> Iterator[socket.socket]:
    """Open the port; a port that is in use, or may not be used, is an error of usage."""
    if not 0 <= port <= 65535:
        raise UsageError(f"port {port}: expected a number from 0 to 65535")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host,
            port,
            type=socket.SOCK_STREAM,
            proto=socket.IPPROTO_TCP,  # asyncio sends small packets of such sockets at once
            flags=socket.AI_PASSIVE,
        )[0]
    except (socket.gaierror, UnicodeError):
        raise UsageError(f"there is no host '{host}' to listen at") from None
    with socket.socket(family, kind, protocol) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(address)
        except OSError as error:
            raise UsageError(_explain(error, host, port)) from None
        listening.listen(BACKLOG)
        yield listening


def _explain(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is in use by another program; choose another one, or 0 for a free one"
    if error.errno == errno.EACCES:
        return f"port {port} needs administrator rights; choose one from 1024 to 65535"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"host {host}: this machine does not have that address"
    return f"cannot listen at {host}, port {port}: {error.strerror}"


def address_of(listening: socket.socket, host: str) -> str:
    """Return the address that a browser opens."""
    port = listening.getsockname()[1]
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(host, host)
    return f"http://[{name}]:{port}" if ":" in name and "[" not in name else f"http://{name}:{port}"


@contextmanager
def _ending_quietly() -> Iterator[None]:
    """Let the process end normally after a signal: uvicorn raises it again when it is done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ignore(number: int, frame: Any) -> None:
        return None

    before = {each: signal.signal(each, ignore) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
