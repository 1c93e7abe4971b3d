"""How long to wait before a request is tried again.

The wait doubles with each try, up to a limit, and is shortened at random by up to half, so that
requests that failed together do not come back together (jitter). A server that says how long to
wait (``Retry-After``) is obeyed.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

FIRST_WAIT = 0.5
MAX_WAIT = 30.0
MAX_RETRY_AFTER = 300.0
"""Seconds beyond which a server's wish ends the request instead."""


def wait_before(attempt: int, rng: random.Random) -> float:
    """Return the seconds to wait before try ``attempt``; 1 is the first that is repeated.

    >>> [round(wait_before(attempt, random.Random(7)), 2) for attempt in (1, 2, 3, 4, 20)]
    [0.33, 0.66, 1.32, 2.65, 19.86]
    """
    longest = min(FIRST_WAIT * 2.0 ** (min(attempt, 30) - 1), MAX_WAIT)
    return longest * (0.5 + rng.random() / 2)


def read_retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """Return the seconds that a ``Retry-After`` header asks for: a number, or a date.

    >>> read_retry_after("1.5"), read_retry_after("soon")
    (1.5, None)
    >>> noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    >>> read_retry_after("Sat, 31 Jan 2026 12:00:20 GMT", noon)
    20.0
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
        except ValueError:
            return None
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        seconds = (date - (now or datetime.now(UTC))).total_seconds()
    return max(0.0, seconds) if seconds == seconds else None
