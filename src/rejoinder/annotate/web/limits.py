"""Limit how often an address may do something in a minute."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

MAX_ADDRESSES = 20_000


@dataclass(frozen=True)
class Limits:
    """What an address may do in a minute."""

    sign_ups: int = 20
    """New people from one address."""
    all_sign_ups: int = 600
    """New people from all addresses together."""
    wrong_links: int = 60
    """Secret links that do not exist; after that, links of this address are not looked up."""


class RateLimit:
    """Counts events of each address in windows of a minute."""

    def __init__(
        self, limit: int, seconds: float = 60, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.limit, self.seconds, self._now = limit, seconds, now
        self._counts: dict[str, int] = {}
        self._window = now()
        self._lock = threading.Lock()

    def reached(self, address: str) -> bool:
        """Return whether the address has used up its events of this window."""
        with self._lock:
            self._begin_window()
            return self._counts.get(address, 0) >= self.limit

    def take(self, address: str) -> bool:
        """Count an event; False if the address has used up its events of this window."""
        with self._lock:
            self._begin_window()
            count = self._counts.get(address, 0)
            if count >= self.limit or (not count and len(self._counts) >= MAX_ADDRESSES):
                return False
            self._counts[address] = count + 1
            return True

    def _begin_window(self) -> None:
        if self._now() - self._window >= self.seconds:
            self._window = self._now()
            self._counts.clear()


def network(host: str) -> str:
    """Return the address whose events are counted together.

    A person with IPv6 usually has a whole network of 64 bits, which counts as one address.

    >>> network("203.0.113.7"), network("2001:db8:1:2:3:4:5:6"), network("::ffff:203.0.113.7")
    ('203.0.113.7', '2001:db8:1:2::', '203.0.113.7')
    """
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(IPv6Address(int(address) >> 64 << 64))
