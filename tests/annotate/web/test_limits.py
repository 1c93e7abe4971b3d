"""Limits of what an address may do in a minute."""

from __future__ import annotations

import threading

from rejoinder.annotate.web import limits
from rejoinder.annotate.web.limits import RateLimit


def test_an_address_has_its_events_again_in_the_next_minute() -> None:
    now = [0.0]
    limit = RateLimit(2, 60, lambda: now[0])
    assert [limit.take("a") for _ in range(3)] == [True, True, False]
    assert limit.take("b") and limit.reached("a") and not limit.reached("b")
    now[0] = 59.9
    assert not limit.take("a")
    now[0] = 60.0
    assert limit.take("a") and not limit.reached("a")


def test_many_addresses_do_not_fill_the_memory(monkeypatch) -> None:
    monkeypatch.setattr(limits, "MAX_ADDRESSES", 3)
    limit = RateLimit(5, 60, lambda: 0.0)
    assert [limit.take(name) for name in "abcd"] == [True, True, True, False]
    assert limit.take("a")


def test_threads_together_do_not_exceed_the_limit() -> None:
    limit = RateLimit(100, 60, lambda: 0.0)
    taken = []
    threads = [
        threading.Thread(target=lambda: taken.extend(limit.take("a") for _ in range(50)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == 100
