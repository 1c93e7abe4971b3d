"""People with a browser in tests: a client of the application that reads and sends forms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from typing import Any

from starlette.testclient import TestClient

from rejoinder.annotate.store import Store
from rejoinder.annotate.web.app import make_app

FIELD = re.compile(r"<input\b[^>]*>")
ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')
FETCH = {"Rejoinder-Request": "fragment"}
"""The header with which the script of the pages sends answers."""


def browser(store: Store, **options: Any) -> TestClient:
    """Return a browser without a session. Redirects are not followed, faults are responses."""
    return TestClient(
        make_app(store, **options), follow_redirects=False, raise_server_exceptions=False
    )


def hidden_fields(html: str) -> dict[str, str]:
    """Return the hidden fields of the forms of a page."""
    fields = {}
    for field in FIELD.findall(html):
        attributes = dict(ATTRIBUTE.findall(field))
        if attributes.get("type") == "hidden":
            fields[attributes["name"]] = unescape(attributes["value"])
    return fields


class Person:
    """A person who has opened their secret link."""

    def __init__(self, store: Store, name: str = "ann", client: TestClient | None = None) -> None:
        self.store = store
        self.browser = client or browser(store)
        (self.token,) = store.invite([name])
        assert self.browser.get(f"/p/{self.token}").status_code == 303

    def page(self) -> str:
        return self.browser.get("/").text

    def send(self, path: str, fields: Mapping[str, str] | None = None, **options: Any) -> Any:
        """Send the form of the current page."""
        form = {**hidden_fields(self.page()), **(fields or {})}
        return self.browser.post(path, data=form, **options)

    def begin(self) -> Person:
        """Read the instructions."""
        assert self.send("/start").status_code == 303
        return self


class Researcher:
    """The researcher, who has opened their secret link."""

    def __init__(self, store: Store) -> None:
        self.browser = browser(store)
        token = store.secret("researcher", renew=True)
        assert self.browser.get(f"/researcher/{token}").headers["location"] == "/study"

    def page(self) -> str:
        return self.browser.get("/study").text

    def send(self, action: str, **fields: str) -> Any:
        csrf = hidden_fields(self.page())["csrf"]
        return self.browser.post(f"/study/{action}", data={"csrf": csrf, **fields})
