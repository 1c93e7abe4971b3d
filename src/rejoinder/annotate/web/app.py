"""The web application of a study."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from rejoinder.annotate.database import DatabaseFull
from rejoinder.annotate.store import Store
from rejoinder.annotate.tasks.kind import Form
from rejoinder.annotate.web.forms import max_body, read_form
from rejoinder.annotate.web.limits import Limits
from rejoinder.annotate.web.pages import Pages
from rejoinder.annotate.web.people import PeoplePages
from rejoinder.annotate.web.researcher import ResearcherPages
from rejoinder.annotate.web.security import Cookies, Forged, Guard, NoResearcher, NoSession
from rejoinder.annotate.web.static_files import static_files
from rejoinder.errors import RejoinderError

Endpoint = Callable[[Request], Awaitable[Response]]
KNOWN_ERRORS = (400, 403, 404, 405, 408, 413, 415, 422, 429, 503, 507)
FOREVER = "public, max-age=31536000, immutable"


class StudyApp(Starlette):
    """An application whose responses all have the security headers, those of errors too."""

    guard: Callable[[ASGIApp], ASGIApp]

    def build_middleware_stack(self) -> ASGIApp:
        return self.guard(super().build_middleware_stack())


def make_app(
    store: Store, *, base_address: str | None = None, limits: Limits | None = None
) -> Starlette:
    """Return the web application of a study.

    ``base_address`` is the address under which browsers reach it, if a proxy stands before it:
    with https, cookies are sent only encrypted; a path is put before all addresses.
    """
    pages = Pages(store, base_address)
    cookies = Cookies(store, base_address)
    people = PeoplePages(store, pages, cookies, limits or Limits())
    researcher = ResearcherPages(store, pages, cookies, people.wrong_links)
    limit = max_body(store.settings)

    def get(handler: Callable[[Request], Response]) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            return await run_in_threadpool(handler, request)

        return endpoint

    def post(handler: Callable[[Request, Form], Response]) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            form = await read_form(request, limit)
            return await run_in_threadpool(handler, request, form)

        return endpoint

    async def answer(request: Request) -> Response:
        return await people.answer(request, await read_form(request, limit))

    def error_page(error: HTTPException) -> Response:
        status = error.status_code
        name = f"error_{status if status in KNOWN_ERRORS else 500}"
        return pages.message(None, name, status, error.headers)

    def on_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return error_page(error)

    def on_forged(request: Request, error: Exception) -> Response:
        return pages.message(request, "forged", 403)

    def on_no_session(request: Request, error: Exception) -> Response:
        if isinstance(error, NoResearcher):
            return pages.message(request, "no_researcher", 403)
        return people.no_session(request)

    def on_failure(request: Request, error: Exception) -> Response:
        """The database is full, or does not answer: nothing was stored."""
        full = isinstance(error, DatabaseFull)
        return error_page(HTTPException(507 if full else 503, headers={"retry-after": "30"}))

    def on_bug(request: Request, error: Exception) -> Response:
        return error_page(HTTPException(500))

    def static(request: Request) -> Response:
        file = static_files().get(request.path_params["name"])
        if file is None:
            raise HTTPException(404)
        return Response(
            file.content, media_type=file.media_type, headers={"cache-control": FOREVER}
        )

    def health(request: Request) -> Response:
        """Say that server and database answer."""
        return PlainTextResponse("paused" if store.paused else "ok")

    app = StudyApp(
        routes=[
            Route("/", get(people.home)),
            Route("/answer", answer, methods=["POST"]),
            Route("/consent", post(people.consent), methods=["POST"]),
            Route("/start", post(people.start), methods=["POST"]),
            Route("/continue", post(people.next_batch), methods=["POST"]),
            Route("/p/{token}", get(people.link)),
            Route("/join", get(people.join)),
            Route("/join", post(people.sign_up), methods=["POST"]),
            Route("/researcher/{token}", get(researcher.link)),
            Route("/study", get(researcher.page)),
            Route("/study/status.json", get(researcher.status)),
            Route("/study/pause", post(researcher.pause), methods=["POST"]),
            Route("/study/resume", post(researcher.resume), methods=["POST"]),
            Route("/study/exclude", post(researcher.exclude), methods=["POST"]),
            Route("/study/include", post(researcher.include), methods=["POST"]),
            Route("/static/{name}", get(static)),
            Route("/healthz", get(health)),
        ],
        exception_handlers={
            HTTPException: on_http_error,
            Forged: on_forged,
            NoSession: on_no_session,
            RejoinderError: on_failure,
            Exception: on_bug,
        },
    )
    app.guard = lambda inner: Guard(inner, limit, error_page)
    app.router.redirect_slashes = False
    return app
