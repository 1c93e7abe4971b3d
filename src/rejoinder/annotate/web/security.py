"""Sessions, tokens against forged requests, and headers.

A browser proves who it is by a random token in a cookie; the database has only its hash. A form
proves that it was sent from a page of this server by the HMAC of that token, which other sites
cannot read.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rejoinder.annotate.store import Store
from rejoinder.annotate.web.limits import network

VISITOR_TOKEN = re.compile(r"[\w-]{32}", re.ASCII)
COOKIE_SECONDS = 365 * 24 * 3600

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


class Forged(Exception):
    """A form without the token of its session, or from another site."""


class NoSession(Exception):
    """A request of a browser that has not opened a secret link."""


class NoResearcher(NoSession):
    """A request for the researcher's page by somebody else."""


@dataclass(frozen=True)
class Session:
    """A browser that has opened a secret link."""

    token: str

    @property
    def csrf(self) -> str:
        return csrf_token(self.token)


@dataclass(frozen=True)
class PersonSession(Session):
    """A browser of a person who takes part."""

    person: int


def csrf_token(session: str) -> str:
    """Return the token that the forms of a session carry."""
    return hmac.new(session.encode("utf-8", "replace"), b"csrf", hashlib.sha256).hexdigest()


def check_form(request: Request, form: Mapping[str, str], session: str) -> None:
    """Raise :class:`Forged` unless a form was sent from a page of this session."""
    check_site(request)
    given = form.get("csrf", "").encode()
    if not session or not hmac.compare_digest(given, csrf_token(session).encode()):
        raise Forged


def check_site(request: Request) -> None:
    """Raise :class:`Forged` if the browser says that another site sent the form."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Forged


class Cookies:
    """The cookies of a study: several studies on one host do not share them."""

    def __init__(self, store: Store, base_address: str | None) -> None:
        self.store = store
        self.path = (urlsplit(base_address or "").path.rstrip("/")) or "/"
        self.https = (base_address or "").lower().startswith("https:")
        self.person = f"rejoinder-{store.study_id}"
        self.researcher = f"{self.person}-researcher"
        self.visitor = f"{self.person}-visitor"

    def find_person(self, request: Request) -> PersonSession | None:
        """Return the session of a person, if there is one."""
        token = request.cookies.get(self.person, "")
        _, person = self.store.session(token) if token else (False, None)
        return None if person is None else PersonSession(token, person)

    def person_session(
        self, request: Request, form: Mapping[str, str] | None = None
    ) -> PersonSession:
        """Return the session of a person, after a check of the form if one was sent."""
        session = self.find_person(request)
        if session is None:
            raise NoSession
        if form is not None:
            check_form(request, form, session.token)
        return session

    def checked_token(self, request: Request, form: Mapping[str, str]) -> str:
        """Return the token of a person's browser, after a check of the form; whether there is such
        a session is not known yet."""
        token = request.cookies.get(self.person, "")
        if not token:
            raise NoSession
        check_form(request, form, token)
        return token

    def researcher_session(
        self, request: Request, form: Mapping[str, str] | None = None
    ) -> Session:
        """Return the session of the researcher, after a check of the form if one was sent."""
        token = request.cookies.get(self.researcher, "")
        exists, person = self.store.session(token) if token else (False, None)
        if not exists or person is not None:
            raise NoResearcher
        if form is not None:
            check_form(request, form, token)
        return Session(token)

    def start(self, request: Request, response: Response, person: int | None) -> None:
        """Begin a session of a person, or of the researcher (None)."""
        token = self.store.start_session(person)
        self.set(request, response, self.researcher if person is None else self.person, token)

    def visitor_token(self, request: Request) -> str:
        """Return the token of a browser that has no session yet, for the form of the sign-up."""
        token = request.cookies.get(self.visitor, "")
        return token if VISITOR_TOKEN.fullmatch(token) else secrets.token_urlsafe(24)

    def set(self, request: Request, response: Response, name: str, token: str) -> None:
        """Set a cookie that scripts cannot read and that other sites' forms do not send."""
        response.set_cookie(
            name,
            token,
            max_age=COOKIE_SECONDS,
            path=self.path,
            httponly=True,
            samesite="lax",
            secure=self.https or request.scope["scheme"] == "https",
        )


def client(request: Request) -> str:
    """Return the address of a client, for the limits."""
    return network(request.client.host) if request.client else "local"


ErrorPage = Callable[[HTTPException], Response]


class Guard:
    """Refuses large bodies before they are read, and adds the security headers to everything."""

    def __init__(self, app: ASGIApp, limit: int, error_page: ErrorPage) -> None:
        self.app, self.limit, self.error_page = app, limit, error_page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        length = headers.get("content-length", "0")
        chunked = "transfer-encoding" in headers

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    added.setdefault(name, value)
                if chunked:  # the rest of a body of unknown length is not read
                    added["connection"] = "close"
            await send(message)

        # a length of more than 12 digits need not be understood
        if not (length.isdecimal() and len(length) <= 12 and int(length) <= self.limit):
            refused = self.error_page(HTTPException(413, headers={"connection": "close"}))
            await refused(scope, receive, send_with_headers)
            return
        await self.app(scope, receive, send_with_headers)
