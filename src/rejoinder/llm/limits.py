"""How fast and how patiently a server is asked."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

MAX_CONCURRENCY = 1000
MAX_SECONDS = 24 * 3600.0
MAX_RETRIES = 100


@dataclass(frozen=True)
class Limits:
    """Limits on requests; none of them changes an answer."""

    concurrency: int = 4
    """Requests under way at the same time."""
    requests_per_second: float | None = None
    timeout: float = 120.0
    """Seconds until a request is given up, all of its answer included."""
    retries: int = 8
    """Further tries after a failure that may pass."""

    def __post_init__(self) -> None:
        rate = self.requests_per_second
        if not 1 <= self.concurrency <= MAX_CONCURRENCY:
            raise ValueError(f"concurrency={self.concurrency} is not from 1 to {MAX_CONCURRENCY}")
        if rate is not None and not 0 < rate <= 1e6:
            raise ValueError(f"requests_per_second={rate} is not above 0")
        if not 0 < self.timeout <= MAX_SECONDS:
            raise ValueError(f"timeout={self.timeout} is not above 0 s and up to a day")
        if not 0 <= self.retries <= MAX_RETRIES:
            raise ValueError(f"retries={self.retries} is not from 0 to {MAX_RETRIES}")


class Pace:
    """Delays requests: to so many a second, and while the server asks for a pause."""

    def __init__(self, requests_per_second: float | None) -> None:
        self._interval = 1 / requests_per_second if requests_per_second else 0.0
        self._next = 0.0

    async def wait(self) -> None:
        """Wait until the next request may be sent."""
        clock = asyncio.get_running_loop().time
        while (delay := self._next - clock()) > 0:
            await asyncio.sleep(delay)
        self._next = clock() + self._interval

    def pause(self, seconds: float) -> None:
        """Send nothing for some time: the server said that it is asked too often."""
        now = asyncio.get_running_loop().time()
        self._next = max(self._next, now + seconds)
