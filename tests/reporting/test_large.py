"""A report over many items: built in reasonable time, small, and quick to open."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

from browser import opened
from rejoinder.errors import UsageError
from rejoinder.items import Item, Reference
from reporting.replies import page, scored

pytestmark = pytest.mark.xdist_group("browser")

CONTEXTS, SYSTEMS = 25_000, 4
MAX_SECONDS = 60
"""Of this process, on one core, for what takes about 10."""
INTERACTIVE = 5_000
"""Milliseconds until the table of items can be used, on a busy machine."""


def test_a_hundred_thousand_items(browser: Browser, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    words = rng.integers(0, 5000, (CONTEXTS, SYSTEMS, 8))
    items = [
        Item(
            id=f"{context}:{system}",
            context_id=str(context),
            context=[f"what about {context}"],
            response=" ".join(f"w{word}" for word in words[context, system]),
            system=f"s{system}",
            references=[Reference(f"w{words[context, 0, 0]} yes"), Reference("no", -0.5)],
            ratings=float(words[context, system, 0] % 5),
        )
        for context in range(CONTEXTS)
        for system in range(SYSTEMS)
    ]
    values: list[float | str] = list(rng.random(len(items)))
    values[12_345] = "it is empty"
    began = time.process_time()
    made = page(items, scored("ruber", items, values), resamples=100)
    assert time.process_time() - began < MAX_SECONDS
    assert len(made) < 3_000_000
    path = tmp_path / "large.html"
    path.write_bytes(made)
    with opened(browser, path.as_uri()) as (shown, complaints, _):
        shown.wait_for_selector("html[data-ready]")
        ready = shown.evaluate("performance.getEntriesByType('navigation')[0].domInteractive")
        assert ready < INTERACTIVE
        said = shown.locator("#items").inner_text()
        assert "2,000 of 100,000 items" in said
        assert "random sample of whole contexts (seed 1)" in said
        assert "10,000 of 100,000 rated replies" in shown.locator("#people").inner_text()
        assert "it is empty" in shown.locator("#missing").inner_text()
        # the one that could not be scored is among the two thousand
        shown.get_by_label("Scored", exact=True).select_option("unscored by some metric")
        assert shown.get_by_role("button", name="Details of 3086:1", exact=True).count() == 1
        assert complaints == []


def test_long_texts_leave_room_for_fewer_items(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    letters = np.array(list("abcdefghij klmnop"))
    items = [
        Item(
            id=str(number),
            context=["".join(rng.choice(letters, 1500))],
            response="".join(rng.choice(letters, 1500)),
            references=[Reference("".join(rng.choice(letters, 1500)))],
        )
        for number in range(1000)
    ]
    made = page(items, scored("ruber", items, rng.random(1000)))
    assert 2_500_000 < len(made) < 3_000_000
    assert b"as many as this page has room for" in made


def test_many_metrics_and_systems_stay_within_the_limit() -> None:
    items = [
        Item(id=f"{c}:{s}", context_id=str(c), response="r", system=f"s{s}", ratings=float(s % 5))
        for c in range(2)
        for s in range(42)
    ]
    values = np.arange(len(items)) / 100
    found = [x for n in range(62) for x in scored(f"m(n={n})", items, values)]
    made = page(items, found, resamples=100).decode()
    assert len(made) < 3_000_000
    assert "38 more metrics have no table here" in made  # 62 without the 24
    assert "2 more metrics are not listed" in made
    assert "2 more systems are not listed" in made
    assert "38 more metrics are not plotted" in made


def test_names_too_long_for_the_page_are_refused() -> None:
    items = [Item(id=str(n), response="r", system="x" * 10**6) for n in range(3)]
    with pytest.raises(UsageError, match="larger than 3 MB"):
        page(items, scored("m", items, [1.0, 2.0, 3.0]))
