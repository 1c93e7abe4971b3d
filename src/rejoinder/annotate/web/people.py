"""Pages of the people who take part: sign-up, consent, instructions, tasks."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from rejoinder.annotate.person_names import clean_name
from rejoinder.annotate.store import NextStep, Store
from rejoinder.annotate.tasks.kind import Form, Refusal
from rejoinder.annotate.web.forms import MAX_PLATFORM_ID
from rejoinder.annotate.web.limits import Limits, RateLimit
from rejoinder.annotate.web.pages import FRAGMENT, Pages
from rejoinder.annotate.web.security import (
    Cookies,
    NoSession,
    PersonSession,
    check_form,
    client,
    csrf_token,
)

ANSWER = "rejoinder-answer"
"""Header that tells the browser that the server has dealt with an answer, and how."""


class PeoplePages:
    """Answers the requests of people. Each method that is not asynchronous runs in a thread: the
    store may wait."""

    def __init__(self, store: Store, pages: Pages, cookies: Cookies, limits: Limits) -> None:
        self.store, self.pages, self.cookies = store, pages, cookies
        self.sign_ups = RateLimit(limits.sign_ups)
        self.all_sign_ups = RateLimit(limits.all_sign_ups)
        self.wrong_links = RateLimit(limits.wrong_links)

    # what a person does

    def home(self, request: Request) -> Response:
        """Show where a person is now."""
        session = self.cookies.person_session(request)
        return self.pages.step(request, session, self.store.next_step(session.person))

    async def answer(self, request: Request, form: Form) -> Response:
        """Store an answer and show what comes next.

        This is what people do all the time, so it takes no thread of its own: the database has one
        that writes, and the page is rendered in the event loop.
        """
        token = self.cookies.checked_token(request, form)
        submitted = await self.store.submit_of_session(token, form)
        if submitted is None:
            raise NoSession
        person, reply, step = submitted
        session = PersonSession(token, person)
        headers: dict[str, str] = {ANSWER: reply.outcome}
        if reply.outcome == "unknown":
            if step is not None and step.step == "excluded":
                return self.pages.step(request, session, step, headers=headers)
            return self.pages.message(request, "task_unknown", 404, headers, session=session)
        if step is None:
            return self.pages.feedback(request, session, reply, form)
        if reply.outcome == "refused":
            return self.pages.step(
                request, session, step, form=form, refusals=reply.refusals, headers=headers
            )
        if FRAGMENT in request.headers:
            return self.pages.step(request, session, step, headers=headers)
        return self._home(headers)

    def consent(self, request: Request, form: Form) -> Response:
        """Record that a person agrees to take part."""
        session = self.cookies.person_session(request, form)
        if form.get("agree") != "1":
            refusals = [Refusal("agree", "agree")]
            return self.pages.step(request, session, NextStep("consent"), refusals=refusals)
        self.store.advance(session.person, "consent")
        return self._home()

    def start(self, request: Request, form: Form) -> Response:
        """Record that a person has read the instructions."""
        session = self.cookies.person_session(request, form)
        self.store.advance(session.person, "instructions")
        return self._home()

    def next_batch(self, request: Request, form: Form) -> Response:
        """Begin a further batch of tasks."""
        session = self.cookies.person_session(request, form)
        self.store.next_batch(session.person)
        return self._home()

    # how a person comes in

    def link(self, request: Request) -> Response:
        """Begin a session by a secret link."""
        address = client(request)
        if self.wrong_links.reached(address):
            return self._too_many(request)
        person = self.store.person_of_link(request.path_params["token"])
        if person is None:
            self.wrong_links.take(address)
            return self.pages.message(request, "link_unknown", 404)
        return self._enter(request, person)

    def join(self, request: Request) -> Response:
        """Show the form of the sign-up, or take the platform's own id from the address."""
        people = self.store.settings.people
        if people.sign_up == "platform":
            return self._join_from_platform(request, people.platform_parameter)
        if people.sign_up != "open":
            return self.pages.message(request, "invited_only", 404)
        if self.cookies.find_person(request) is not None:
            return self._home()
        return self._sign_up_page(request)

    def _join_from_platform(self, request: Request, parameter: str) -> Response:
        platform_id = clean_name(request.query_params.get(parameter, ""), MAX_PLATFORM_ID)
        if platform_id is None:
            return self.pages.message(request, "platform_id", 400, parameter=parameter)
        person: int | Response | None = self.store.person_of_platform(platform_id)
        if person is None:
            person = self._add(request, platform_id, platform_id)
        return person if isinstance(person, Response) else self._enter(request, person)

    def sign_up(self, request: Request, form: Form) -> Response:
        """Add a person who came by the public link, and show them their personal link."""
        if self.store.settings.people.sign_up != "open":
            return self.pages.message(request, "invited_only", 404)
        if self.cookies.find_person(request) is not None:
            return self._home()  # the form was sent twice
        check_form(request, form, request.cookies.get(self.cookies.visitor, ""))
        name = clean_name(form.get("name", ""))
        if name is None:
            return self._sign_up_page(request, form.get("name", ""), wrong=True)
        person = self._add(request, name, None)
        if isinstance(person, Response):
            return person
        link = f"{self.pages.base_address(request)}/p/{self.store.new_link(person)}"
        response = self.pages.render("welcome.html", request=request, name=name, link=link)
        self.cookies.start(request, response, person)
        return response

    def _add(self, request: Request, name: str, platform_id: str | None) -> int | Response:
        """Add a person and return their number, or the page that says why not."""
        if not (self.sign_ups.take(client(request)) and self.all_sign_ups.take("")):
            return self._too_many(request)
        person = self.store.sign_up(name, platform_id)
        return self.pages.message(request, "full", 403) if person is None else person

    def _sign_up_page(self, request: Request, name: str = "", wrong: bool = False) -> Response:
        token = self.cookies.visitor_token(request)
        response = self.pages.render(
            "join.html",
            request=request,
            code=422 if wrong else 200,
            token=csrf_token(token),
            name=name,
            wrong=wrong,
        )
        self.cookies.set(request, response, self.cookies.visitor, token)
        return response

    # helpers

    def _enter(self, request: Request, person: int) -> Response:
        """Begin a session, unless this browser has one of the same person."""
        response = self._home()
        session = self.cookies.find_person(request)
        if session is None or session.person != person:
            self.cookies.start(request, response, person)
        return response

    def _home(self, headers: dict[str, str] | None = None) -> Response:
        response = self.pages.redirect("/")
        response.headers.update(headers or {})
        return response

    def no_session(self, request: Request) -> Response:
        """Ask to open the personal link, or to sign up."""
        if self.store.settings.people.sign_up == "open" and request.method != "POST":
            return self.pages.redirect("/join")
        return self.pages.message(request, "no_session", 403)

    def _too_many(self, request: Request) -> Response:
        return self.pages.message(request, "too_many", 429, {"retry-after": "60"})
