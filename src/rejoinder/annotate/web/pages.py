"""Render the pages of a study.

Templates get what ``Kind.page`` returns and the words of the study's language, nothing else of a
task: what they do not have, they cannot show.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rejoinder.annotate.answering import Reply
from rejoinder.annotate.dealing import TRAINING
from rejoinder.annotate.store import NextStep, Store
from rejoinder.annotate.tasks.kind import Form, Refusal
from rejoinder.annotate.web.markdown import render_markdown
from rejoinder.annotate.web.security import PersonSession, Session
from rejoinder.annotate.web.static_files import static_version
from rejoinder.annotate.web.translations import read_texts

FRAGMENT = "rejoinder-request"
"""Header of requests that replace the content of a page: they get that part alone."""
HOST = re.compile(r"[\w.:\[\]-]+", re.ASCII)
TEMPLATES = Path(__file__).parent / "templates"


class Pages:
    """Renders the pages of a study in its language."""

    def __init__(self, store: Store, base_address: str | None = None) -> None:
        self.store, self.settings = store, store.settings
        self._base_address = base_address
        self.root = urlsplit(base_address or "").path.rstrip("/")
        self.texts = read_texts(self.settings.language)
        self.study_id = store.study_id
        self.environment = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self.environment.globals.update(
            t=self.texts,
            root=self.root,
            version=static_version(),
            settings=self.settings,
            step_keys=step_keys,
            key_range=key_range,
            duration=self.duration,
        )
        self.instructions = self._text(self.settings.instructions)
        self.consent = self._text(self.settings.consent)

    def _text(self, name: str) -> Markup:
        return render_markdown(self.store.study.text(name)) if name else Markup()

    def render(
        self,
        template: str,
        *,
        request: Request | None = None,
        session: Session | None = None,
        code: int = 200,
        headers: Mapping[str, str] | None = None,
        **values: Any,
    ) -> Response:
        """Return a page, or only its content if the request asks for that."""
        fragment = request is not None and FRAGMENT in request.headers
        html = self.environment.get_template(template).render(
            layout="fragment.html" if fragment else "base.html",
            csrf=session.csrf if session is not None else "",
            storage=self._storage_key(session),
            instructions=self.instructions,
            **values,
        )
        return HTMLResponse(html, code, dict(headers or {}))

    def message(
        self,
        request: Request | None,
        name: str,
        status: int,
        headers: Mapping[str, str] | None = None,
        **values: Any,
    ) -> Response:
        """Return a page that only says something, by the name of its texts."""
        return self.render(
            "message.html", request=request, code=status, headers=headers, name=name, **values
        )

    def base_address(self, request: Request) -> str:
        """Return the address under which the browser reaches the study."""
        if self._base_address:
            return self._base_address.rstrip("/")
        host = request.headers.get("host", "")
        return f"{request.scope['scheme']}://{host if HOST.fullmatch(host) else 'localhost'}"

    def redirect(self, path: str) -> Response:
        return RedirectResponse(f"{self.root}{path}", 303)

    def duration(self, seconds: float | None) -> str:
        """Return a time in words: how long the study still takes."""
        if seconds is None:
            return self.texts("study.no_pace")
        if not seconds:
            return self.texts("study.finished")
        minutes = round(seconds / 60)
        if minutes < 1:
            return self.texts("study.seconds")
        if minutes < 60:
            return self.texts("study.minutes", number=minutes)
        if minutes < 48 * 60:
            return self.texts("study.hours", hours=minutes // 60, minutes=minutes % 60)
        return self.texts("study.days", number=round(minutes / (24 * 60)))

    def _storage_key(self, session: Session | None) -> str:
        """Return the name under which the browser keeps a person's unsent answers."""
        if not isinstance(session, PersonSession):
            return ""
        name = f"{self.study_id}:{session.person}"
        return hashlib.sha256(name.encode()).hexdigest()[:16]

    def step(
        self,
        request: Request,
        session: PersonSession,
        step: NextStep,
        *,
        form: Form | None = None,
        refusals: Sequence[Refusal] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Return the page of what a person does next; after a refusal, with what they entered."""
        code = 422 if refusals else 403 if step.step == "excluded" else 200
        common: dict[str, Any] = {
            "request": request,
            "session": session,
            "code": code,
            "headers": headers,
        }
        if step.step == "task":
            assert step.lease is not None and step.task is not None
            return self.render(
                "task.html",
                **common,
                **self._task(step, form or {}, refusals),
                expected={},
                feedback=None,
            )
        if step.step == "consent":
            return self.render(
                "consent.html",
                **common,
                text=self.consent,
                errors={refusal.name: self._message(refusal) for refusal in refusals},
            )
        if step.step in ("instructions", "batch", "done"):
            return self.render(f"{step.step}.html", **common, step=step)
        return self.render("message.html", **common, name=step.step)  # paused, failed, excluded

    def feedback(
        self, request: Request, session: PersonSession, reply: Reply, form: Form
    ) -> Response:
        """Return the page after a task of the training round: what was expected, and why."""
        assert reply.lease is not None and reply.task is not None
        content, view = reply.task.content, reply.lease.view
        kind = self.store.kind
        return self.render(
            "task.html",
            request=request,
            session=session,
            headers={"rejoinder-answer": reply.outcome},
            **self._task(NextStep("feedback", reply.lease, reply.task, TRAINING), form, ()),
            expected=kind.expected_fields(content, view),
            feedback={
                "right": kind.is_expected(content, reply.value or {}),
                "explanation": content.get("explanation", ""),
            },
        )

    def _task(self, step: NextStep, form: Form, refusals: Sequence[Refusal]) -> dict[str, Any]:
        assert step.lease is not None and step.task is not None
        kind = self.store.kind
        return {
            "step": step,
            "page": kind.page(step.task.content, step.lease.view),
            "task_template": f"tasks/{kind.template}",
            "lease": step.lease.code,
            "form": form,
            "errors": {refusal.name: self._message(refusal) for refusal in refusals},
        }

    def _message(self, refusal: Refusal) -> str:
        return self.texts.either(f"refusals.{refusal.reason}", "refusals.other", **refusal.values)


def step_keys(steps: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the key of the keyboard that chooses each step of a scale.

    It is the value itself if all values have one digit, otherwise the place on the scale.

    >>> step_keys([{"value": 0}, {"value": 1}]), step_keys([{"value": -1}, {"value": 0}])
    (['0', '1'], ['1', '2'])
    """
    values = [int(step["value"]) for step in steps]
    if all(0 <= value <= 9 for value in values):
        return [str(value) for value in values]
    return [str(place) if place <= 9 else "" for place in range(1, len(values) + 1)]


def key_range(steps: Sequence[Mapping[str, Any]]) -> str:
    """Return the keys of a scale in words, such as ``1–5``; nothing if some steps have no key.

    >>> key_range([{"value": 1}, {"value": 2}, {"value": 3}])
    '1–3'
    """
    keys = step_keys(steps)
    return f"{keys[0]}–{keys[-1]}" if all(keys) else ""
