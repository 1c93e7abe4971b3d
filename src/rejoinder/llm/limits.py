"""How fast and how patiently a server is asked."""

from __future__ import annotations

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


NO_LIMITS = Limits()
"""The defaults."""
