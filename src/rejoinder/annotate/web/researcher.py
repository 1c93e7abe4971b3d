"""The researcher's page: progress, people, agreement and ranking, with buttons to act on them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rejoinder.annotate.status import Agreement, StudyStatus, study_status, to_record
from rejoinder.annotate.store import Store
from rejoinder.annotate.tasks.kind import Form
from rejoinder.annotate.web.limits import RateLimit
from rejoinder.annotate.web.pages import Pages
from rejoinder.annotate.web.security import Cookies, client
from rejoinder.annotate.web.strips import strips

RESEARCHER = "researcher"
"""Name of the secret whose link opens the page."""
FRESH_SECONDS = 2.0
MAX_DIGITS = 9


class RecentStatus:
    """The status of a study, computed at most every few seconds, by one thread at a time."""

    def __init__(
        self, compute: Callable[[], StudyStatus], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._compute, self._now = compute, now
        self._lock = threading.Lock()
        self._status: StudyStatus | None = None
        self._fresh_until = 0.0

    def get(self) -> StudyStatus:
        """Return the status; a large study, whose statistics take longer, is asked less often."""
        with self._lock:
            if self._status is None or self._now() >= self._fresh_until:
                begin = self._now()
                self._status = self._compute()
                end = self._now()
                self._fresh_until = end + max(FRESH_SECONDS, 5 * (end - begin))
            return self._status

    def forget(self) -> None:
        """Compute the status anew at the next request: something was changed."""
        self._fresh_until = 0.0


class ResearcherPages:
    """Answers the requests of the researcher."""

    def __init__(
        self, store: Store, pages: Pages, cookies: Cookies, wrong_links: RateLimit
    ) -> None:
        self.store, self.pages, self.cookies = store, pages, cookies
        self.wrong_links = wrong_links
        self.recent = RecentStatus(lambda: study_status(store))

    def link(self, request: Request) -> Response:
        """Begin a session by the researcher's secret link."""
        address = client(request)
        if self.wrong_links.reached(address):
            return self.pages.message(request, "too_many", 429, {"retry-after": "60"})
        if not self.store.has_secret(RESEARCHER, request.path_params["token"]):
            self.wrong_links.take(address)
            return self.pages.message(request, "link_unknown", 404)
        response = self.pages.redirect("/study")
        self.cookies.start(request, response, None)
        return response

    def page(self, request: Request) -> Response:
        """Show the state of the study."""
        session = self.cookies.researcher_session(request)
        status = self.recent.get()
        agreements: list[tuple[str, Agreement]] = [("everyone", status.agreement)]
        if status.without_unreliable is not None:
            agreements.append(("without_unreliable", status.without_unreliable))
        return self.pages.render(
            "study.html",
            request=request,
            session=session,
            status=status,
            agreements=agreements,
            strips=strips([(each.mean, each.ci) for each in status.ranking]),
            without={each.system: each for each in status.ranking_without_unreliable},
            left_out=[each for each in status.people if each.unreliable],
        )

    def status(self, request: Request) -> Response:
        """Return the state of the study as JSON."""
        self.cookies.researcher_session(request)
        content = msgspec.json.encode(to_record(self.recent.get()))
        return Response(content, media_type="application/json")

    def pause(self, request: Request, form: Form) -> Response:
        return self._change(request, form, lambda: self.store.pause(True))

    def resume(self, request: Request, form: Form) -> Response:
        return self._change(request, form, lambda: self.store.pause(False))

    def exclude(self, request: Request, form: Form) -> Response:
        return self._change(request, form, lambda: self.store.exclude(_person(form), True))

    def include(self, request: Request, form: Form) -> Response:
        return self._change(request, form, lambda: self.store.exclude(_person(form), False))

    def _change(self, request: Request, form: Form, change: Callable[[], Any]) -> Response:
        """Change the study, and show it again."""
        self.cookies.researcher_session(request, form)
        change()
        self.recent.forget()
        return self.pages.redirect("/study")


def _person(form: Form) -> int:
    """Return the number of the person in a form."""
    number = form.get("person", "")
    if not (number.isascii() and number.isdecimal() and len(number) <= MAX_DIGITS):
        raise HTTPException(422)
    return int(number)
