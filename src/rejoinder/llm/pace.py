"""Delay requests to a server; apart from the limits, so that only a client imports asyncio."""

from __future__ import annotations

import asyncio


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
