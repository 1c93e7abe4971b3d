"""HTTP as uvicorn speaks it, with limits on the size of a request's head and on its time.

Trailers, which follow a body of unknown length, and extensions of its chunks count as the head
does: whatever is sent without being a part of a body.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rejoinder.annotate.web.security import HEADERS

MAX_HEAD = 32 * 1024
"""Bytes of the request line and the headers together."""
HEAD_SECONDS = 20.0
MAX_WAITING = 10
"""Requests that a client may send before the first one is answered."""


class LimitedProtocol(HttpToolsProtocol):
    """Closes connections whose head is too large, or does not arrive in time."""

    _went_on = False
    _unused = 0
    """Bytes since the last part of a body."""
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._start_timer()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._went_on = True
        self._stop_timer()
        if len(self.pipeline) >= MAX_WAITING:
            raise ValueError("too many requests at once")  # ends the connection with code 400
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._went_on = True
        super().on_body(body)

    def data_received(self, data: bytes) -> None:
        self._went_on = False
        super().data_received(data)
        self._unused = 0 if self._went_on else self._unused + len(data)
        if self._unused > MAX_HEAD and not self.transport.is_closing():
            self._refuse("431 Request Header Fields Too Large", "")

    def send_400_response(self, msg: str) -> None:
        self._refuse("400 Bad Request", msg)

    def _refuse(self, status: str, text: str) -> None:
        """Answer a request that does not reach the application."""
        headers = {
            **HEADERS,
            "content-type": "text/plain; charset=utf-8",
            "content-length": str(len(text)),
            "connection": "close",
        }
        lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers.items())]
        self.transport.write("\r\n".join([*lines, "", text]).encode("ascii"))
        self.transport.close()

    def _start_timer(self) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()
