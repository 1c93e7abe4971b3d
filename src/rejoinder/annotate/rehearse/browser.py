"""A browser for simulated people: one connection, cookies, redirects, forms."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit

from rejoinder.annotate.rehearse.page import Page, read_page
from rejoinder.annotate.web.pages import FRAGMENT
from rejoinder.annotate.web.people import ANSWER

TIMEOUT = 60.0
MAX_REDIRECTS = 5


class WrongResponse(Exception):
    """A response that a person should never get."""


class Browser:
    """A browser of one person; without a script, it loads a whole page after each answer."""

    def __init__(self, address: str, *, script: bool) -> None:
        parts = urlsplit(address)
        self.connection = http.client.HTTPConnection(
            parts.hostname or "", parts.port, timeout=TIMEOUT
        )
        self.script = script
        self.cookies: dict[str, str] = {}

    def open(self, path: str) -> Page:
        """Load a page."""
        return self._load("GET", path)

    def send(self, path: str, form: Mapping[str, str]) -> Page:
        """Send a form, and return the page that follows."""
        return self._load("POST", path, urlencode(form).encode())

    def close(self) -> None:
        self.connection.close()

    def _load(self, method: str, path: str, body: bytes | None = None) -> Page:
        outcome = ""
        for _ in range(MAX_REDIRECTS):
            response, text = self._request(method, path, body)
            outcome = outcome or response.headers.get(ANSWER, "")
            if response.status != 303:
                break
            method, path, body = "GET", urlsplit(response.headers["location"]).path, None
        if response.status not in (200, 422):
            raise WrongResponse(f"{method} {path.partition('/p/')[0]}: status {response.status}")
        page = read_page(text)
        page.outcome = outcome
        return page

    def _request(
        self, method: str, path: str, body: bytes | None
    ) -> tuple[http.client.HTTPResponse, str]:
        headers = {"cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        if body is not None:
            headers["content-type"] = "application/x-www-form-urlencoded"
            if self.script and path.endswith("/answer"):
                headers[FRAGMENT] = "fragment"
        self.connection.request(method, path, body, headers)
        response = self.connection.getresponse()
        text = response.read().decode()
        for cookie in response.headers.get_all("set-cookie", []):
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
        return response, text
