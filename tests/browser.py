"""A browser for tests of pages: the installed Chromium or Chrome, driven by Playwright.

Without a browser these tests are skipped, and fail under CI=true.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
INSTALL = "apt-get install -y --no-install-recommends chromium"
MISSING = f"chromium not found; install it, on Debian with: {INSTALL}"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def find_chromium() -> str | None:
    """Return the path of the browser; None if there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def chromium() -> str:
    """Return the path of the browser; skip the test if there is none."""
    path = find_chromium()
    if path is not None:
        return path
    if os.environ.get("CI") == "true":
        pytest.fail(MISSING)
    pytest.skip(MISSING)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests of a process: Playwright can be started only once."""
    from playwright.sync_api import sync_playwright

    path = chromium()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield started
        started.close()


@contextmanager
def opened(
    browser: Browser, address: str, *, width: int = 1280, dark: bool = False
) -> Iterator[tuple[Page, list[str], list[str]]]:
    """Open a page in a fresh profile; yield it, its console messages, and the URLs it requests."""
    context = browser.new_context(
        viewport={"width": width, "height": 844},
        color_scheme="dark" if dark else "light",
    )
    page = context.new_page()
    page.set_default_timeout(15_000)
    complaints: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    try:
        page.goto(address)
        yield page, complaints, asked
    finally:
        context.close()
