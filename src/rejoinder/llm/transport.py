"""Send one request over HTTP, and say exactly how it failed.

The HTTP client is httpx2, the maintained successor of httpx, and not the package ``openai``, which
is itself a layer over httpx2. Of what that layer adds, the client here can use the address and the
header: retries must be counted against the budget, draw from a seeded generator and respect any
``Retry-After``; answers must be stored as the server sent them, fields of other servers included.
Measured: importing httpx2 takes 50 ms and 150 modules, ``openai`` 3.51 takes 280 ms and 788, with
pydantic and jiter to install. httpx2 also comes with transformers, so most have it already.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rejoinder.errors import missing_extra
from rejoinder.llm.backoff import read_retry_after
from rejoinder.llm.endpoint import Endpoint
from rejoinder.llm.limits import Limits
from rejoinder.llm.secrets import redact, redact_body
from rejoinder.version import __version__

if TYPE_CHECKING:
    import httpx2

MAX_BYTES = 32 * 2**20
"""Bytes of an answer."""
CONNECT_TIMEOUT = 10.0


@dataclass(frozen=True)
class Received:
    """The server's answer to a request."""

    status: int
    phrase: str
    body: bytes
    retry_after: float | None


class NoAnswer(Exception):
    """A request got no answer; the message says why."""


class NotConnected(NoAnswer):
    """No connection to the server could be opened."""


class TooSlow(NoAnswer):
    """The answer was not complete in time."""


class Transport:
    """An open HTTP client for one endpoint."""

    def __init__(self, endpoint: Endpoint, limits: Limits, key: str | None) -> None:
        self._url, self._key, self._timeout = endpoint.chat_url, key, limits.timeout
        self._client = _client(endpoint, limits, key)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def post(self, body: bytes) -> Received:
        """Send a request and return its answer; NoAnswer says why there is none."""
        import httpx2

        try:
            # the timeouts of httpx2 are for each read: a server that drips would never end
            async with asyncio.timeout(self._timeout):
                return await self._exchange(body)
        except TimeoutError:
            raise TooSlow(f"no answer within {self._timeout:g} s") from None
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            raise NotConnected(self._explain(error)) from None
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            raise NoAnswer(f"the connection broke ({self._explain(error)})") from None

    async def _exchange(self, body: bytes) -> Received:
        async with self._client.stream("POST", self._url, content=body) as response:
            parts, size = [], 0
            async for part in response.aiter_bytes():
                parts.append(part)
                size += len(part)
                if size > MAX_BYTES:
                    raise NoAnswer(f"the answer has more than {MAX_BYTES // 2**20} MB")
            return Received(
                response.status_code,
                redact(response.reason_phrase, self._key),
                redact_body(b"".join(parts), self._key),
                read_retry_after(response.headers.get("retry-after")),
            )

    def _explain(self, error: Exception) -> str:
        """Return the reason in an error; the text of one about headers may hold the key."""
        text = redact(str(error), self._key)
        return next(iter(text.strip().splitlines()), type(error).__name__)[:200]


def _client(endpoint: Endpoint, limits: Limits, key: str | None) -> httpx2.AsyncClient:
    try:
        import httpx2
    except ImportError:
        raise missing_extra("llm", "httpx2", task="asking a server") from None
    headers = {"User-Agent": f"rejoinder/{__version__}", "Content-Type": "application/json"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    return httpx2.AsyncClient(
        headers=headers,
        timeout=httpx2.Timeout(limits.timeout, connect=min(CONNECT_TIMEOUT, limits.timeout)),
        limits=httpx2.Limits(
            max_connections=limits.concurrency, max_keepalive_connections=limits.concurrency
        ),
        # a key must not follow a redirect, and a proxy cannot reach this machine
        follow_redirects=False,
        trust_env=not endpoint.is_local,
    )
