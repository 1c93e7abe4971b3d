"""A page in Chromium whose dialogs, console messages and requests are recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

REPORT_VIOLATIONS = """
addEventListener("securitypolicyviolation", (event) =>
  console.error(`violation of ${event.violatedDirective}: ${event.blockedURI}`));
"""
FOREIGN_ELEMENTS = """
() => [...document.querySelectorAll("*")].filter((element) =>
  ["iframe", "object", "embed", "img", "base", "style", "template", "math", "video", "marquee",
   "animate"].includes(element.localName)
  || (element.localName === "script" && !element.getAttribute("src")?.startsWith("/static/"))
  || (element.localName === "svg" && !element.classList.contains("strip"))
  || [...element.attributes].some(({ name, value }) =>
    name.startsWith("on") || name === "style" || name === "srcdoc"
    || (["href", "src", "action", "formaction"].includes(name)
        && !["http:", "https:", "mailto:"].includes(new URL(value, location.href).protocol)))
).map((element) => element.outerHTML)
"""
"""Elements that no template of the pages has, and attributes that run or fetch something."""


@dataclass
class Watched:
    """A page and what happened on it."""

    page: Page
    happened: list[str] = field(default_factory=list)
    """Dialogs, messages of the console, errors of scripts."""
    requested: list[str] = field(default_factory=list)

    def foreign_elements(self) -> list[str]:
        found: list[str] = self.page.evaluate(FOREIGN_ELEMENTS)
        return found

    def outside(self, address: str) -> list[str]:
        """Return the requests to other servers."""
        return [url for url in self.requested if not url.startswith(f"{address}/")]


@contextmanager
def watched(browser: Browser) -> Iterator[Watched]:
    """Open an empty page in a fresh profile."""
    context = browser.new_context()
    context.add_init_script(REPORT_VIOLATIONS)
    page = context.new_page()
    page.set_default_timeout(30_000)
    watch = Watched(page)

    def on_dialog(dialog) -> None:
        watch.happened.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("dialog", on_dialog)
    page.on("console", lambda message: watch.happened.append(message.text))
    page.on("pageerror", lambda error: watch.happened.append(str(error)))
    page.on("request", lambda request: watch.requested.append(request.url))
    try:
        yield watch
    finally:
        context.close()
