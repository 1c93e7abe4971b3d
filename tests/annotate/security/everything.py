"""Fetch everything that a person who takes part can reach."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from starlette.routing import Route
from starlette.testclient import TestClient

from annotate.security.filling import filled_in, hidden
from annotate.web.client import FETCH, browser
from rejoinder.annotate.store import Store
from rejoinder.annotate.web.app import make_app
from rejoinder.annotate.web.limits import Limits
from rejoinder.annotate.web.static_files import static_files

MANY = Limits(sign_ups=10**6, all_sign_ups=10**6, wrong_links=10**6)


@dataclass
class Visitor:
    """A person who looks at everything, with all responses that they got."""

    store: Store
    name: str = "visitor"
    seen: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.client: TestClient = browser(self.store, limits=MANY)
        self.rng = np.random.default_rng(7)
        (self.token,) = self.store.invite([self.name])

    def get(self, path: str, **options: Any) -> Any:
        return self.ask("GET", path, **options)

    def ask(self, method: str, path: str, **options: Any) -> Any:
        self.seen.append(self.client.request(method, path, **options))
        return self.seen[-1]

    def page(self) -> str:
        text: str = self.get("/").text
        return text

    def send(self, path: str, fields: dict[str, str], **options: Any) -> Any:
        return self.ask("POST", path, data=fields, **options)

    def enter(self) -> Visitor:
        """Open the link, agree, read the instructions."""
        self.get(f"/p/{self.token}")
        if 'action="/consent"' in self.page():
            self.send("/consent", hidden(self.page()))
            self.send("/consent", {**hidden(self.page()), "agree": "1"})
        self.send("/start", hidden(self.page()))
        return self

    def lease(self) -> str | None:
        """Return the code of the next task; None if there is none."""
        page = self.page()
        if 'action="/continue"' in page:
            self.send("/continue", hidden(page))
            page = self.page()
        return hidden(page).get("lease")

    def answer(self, word: str = "", comment: str = "", *, carelessly: bool = False) -> bool:
        """Answer the next task; False if there is none. Some answers are sent without anything
        chosen before, and some twice."""
        if self.lease() is None:
            return False
        page = self.page()
        if carelessly:
            self.send("/answer", {**hidden(page), "comment": comment})
        headers = FETCH if self.rng.random() < 0.5 else {}
        for _ in range(20):  # a reply may be too similar to another one by chance
            form = {**filled_in(page, self.rng, word), "comment": comment}
            sent = self.send("/answer", form, headers=headers)
            if sent.headers["rejoinder-answer"] != "refused":
                break
        assert sent.headers["rejoinder-answer"] in ("stored", "repeated"), sent.text
        if carelessly:
            assert self.send("/answer", form).headers["rejoinder-answer"] == "repeated"
        return True

    def answer_all(self, **options: Any) -> int:
        count = 0
        while self.answer(**options):
            count += 1
            assert count < 200
        return count

    def try_every_address(self) -> None:
        """Ask for all addresses of the application, in all ways."""
        csrf = {"csrf": hidden(self.page()).get("csrf", "")}
        for route in make_app(self.store).routes:
            assert isinstance(route, Route)
            path = route.path.replace("{token}", self.token).replace("{name}", "task.js")
            for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"):
                self.ask(method, path)
            self.send(path, {**csrf, "person": "1", "name": "x"})
            self.get(path, headers=FETCH)
        for name in static_files():
            self.get(f"/static/{name}")
        for path in ("/nowhere", "/study/", "/openapi.json", "/docs", "/answers.sqlite", "/p/x"):
            self.get(path)

    def everything(self) -> str:
        """Return all that the browser received, as one text."""
        return "\n".join(
            f"{each.url} {each.status_code} {each.headers} {each.text}" for each in self.seen
        )
