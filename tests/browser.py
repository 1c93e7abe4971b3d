"""A real browser for tests of pages: Debian's chromium, driven by Playwright.

Under CI it must be there. Elsewhere, tests that need it are skipped with the reason.
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

INSTALL = "apt-get install -y --no-install-recommends chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def chromium() -> str:
    """Where the browser is; without one, the test can't be run."""
    found = shutil.which("chromium")
    if found is not None:
        return found
    message = f"chromium not found; install it, on Debian with: {INSTALL}"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A browser that tests share; each opens pages of its own. One for all, since Playwright can be
    started once in a process."""
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
    """A page in a fresh profile, what it complains of, and what it asks the network for."""
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
