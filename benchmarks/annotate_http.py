"""A light HTTP client for many people at once, the same for every program that is measured.

Each person is a coroutine with one connection. A client that does more (threads, an HTTP library)
takes more of the processor than the servers do, and they share two cores.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

TIMEOUT = 120.0
COOKIE = re.compile(r"([^=]+)=([^;]*)")


@dataclass(frozen=True)
class Response:
    """A response; of headers that stand several times, the last one."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Browser:
    """Sends the requests of one person, with cookies, over one connection."""

    def __init__(self, url: str, *, keep_alive: bool = True) -> None:
        self.address = urlsplit(url)
        self.keep_alive = keep_alive
        self.cookies: dict[str, str] = {}
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Send a request and return the response; redirects are not followed."""
        head = [f"{method} {path} HTTP/1.1", f"host: {self.address.netloc}"]
        if self.cookies:
            pairs = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
            head.append(f"cookie: {pairs}")
        head += [f"{name}: {value}" for name, value in (headers or {}).items()]
        if method != "GET":
            head.append(f"content-length: {len(body)}")
        async with asyncio.timeout(TIMEOUT):
            reader, writer = await self._connected()
            writer.write("\r\n".join([*head, "", ""]).encode() + body)
            return await self._read(reader)

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            host, port = self.address.hostname, self.address.port
            self._streams = await asyncio.open_connection(host, port, limit=2**20)
        return self._streams

    async def _read(self, reader: asyncio.StreamReader) -> Response:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields: dict[str, str] = {}
        for line in lines[1:-2]:
            name, _, value = line.partition(":")
            fields[name.lower()] = value.strip()
            if name.lower() == "set-cookie" and (cookie := COOKIE.match(value.strip())):
                self.cookies[cookie[1]] = cookie[2]
        status = int(lines[0].split()[1])
        if fields.get("transfer-encoding", "").lower() == "chunked":
            content = await self._chunks(reader)
        elif "content-length" in fields:
            content = await reader.readexactly(int(fields["content-length"]))
        elif status in (204, 304):
            content = b""
        else:
            content = await reader.read()
        if not self.keep_alive or fields.get("connection", "").lower() == "close":
            await self.close()
        return Response(status, fields, content)

    async def _chunks(self, reader: asyncio.StreamReader) -> bytes:
        content = bytearray()
        while size := int((await reader.readline()).partition(b";")[0], 16):
            content += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readline()
        return bytes(content)

    async def close(self) -> None:
        """Close the connection; the next request opens another one."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
