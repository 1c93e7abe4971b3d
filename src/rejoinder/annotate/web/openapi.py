"""A description of all addresses of a study's server, as an OpenAPI 3.1 document.

It says what each address takes and which responses it may give. Tests generate requests from it.
"""

from __future__ import annotations

from typing import Any

from rejoinder.annotate.person_names import MAX_NAME
from rejoinder.annotate.study import StudySettings
from rejoinder.annotate.web.forms import FORM_TYPE, MAX_PLATFORM_ID
from rejoinder.version import __version__

Json = dict[str, Any]

EVERYWHERE = {
    "400": "the request cannot be read",
    "413": "the body is too large",
    "503": "the database does not answer; nothing was stored",
}
FORMS = {
    **EVERYWHERE,
    "403": "no session, a missing or wrong csrf token, or a form of another site",
    "408": "the body did not arrive in time",
    "415": "the body is not a form",
    "507": "the disk is full; nothing was stored",
}
TO_HOME = {"303": "stored; continue at /"}
LINKS = {
    "303": "a session begins",
    "404": "there is no such link",
    "429": "too many wrong links from this address",
}


def openapi(settings: StudySettings) -> Json:
    """Return the document of a study's server."""
    parameter = settings.people.platform_parameter
    return {
        "openapi": "3.1.0",
        "info": {"title": "Pages of a study", "version": __version__},
        "paths": {
            "/": {"get": _get("Where the person is now", {"303": "not signed up yet", **_PERSON})},
            "/answer": {
                "post": _post(
                    "Send an answer; the same lease is stored once",
                    {
                        "200": "what comes next",
                        **TO_HOME,
                        "404": "the task is not this person's",
                        "422": "the answer is refused, with the reasons",
                    },
                    _answer_fields(settings),
                    required=("lease",),
                )
            },
            "/consent": {
                "post": _post(
                    "Agree to take part",
                    {**TO_HOME, "422": "the box was not ticked"},
                    {"agree": {"type": "string", "const": "1"}},
                )
            },
            "/start": {"post": _post("Start after reading the instructions", TO_HOME)},
            "/continue": {"post": _post("Begin a further batch", TO_HOME)},
            "/p/{token}": {"get": _get("A person's secret link", LINKS, ["token"])},
            "/join": {
                "get": _get(
                    "Sign up, or come from a platform",
                    {
                        "200": "the form",
                        "303": "a session begins",
                        "403": "the study is full",
                        "404": "people are invited only",
                        "429": "too many sign-ups",
                    },
                    query={parameter: {"type": "string", "maxLength": MAX_PLATFORM_ID}},
                ),
                "post": _post(
                    "Sign up",
                    {
                        "200": "signed up; the page shows the personal link",
                        "303": "signed up before",
                        "404": "people are invited only",
                        "422": "the name cannot be used",
                        "429": "too many sign-ups",
                    },
                    {"name": {"type": "string", "minLength": 1, "maxLength": MAX_NAME}},
                    required=("name",),
                ),
            },
            "/researcher/{token}": {"get": _get("The researcher's secret link", LINKS, ["token"])},
            "/study": {"get": _get("The researcher's page", _PERSON)},
            "/study/status.json": {"get": _get("The state of the study", _PERSON, json=True)},
            "/study/pause": {"post": _post("Deal out no more tasks", _CHANGED)},
            "/study/resume": {"post": _post("Deal out tasks again", _CHANGED)},
            "/study/exclude": {"post": _change_person("Leave out a person's answers")},
            "/study/include": {"post": _change_person("Take in a person's answers again")},
            "/static/{name}": {
                "get": _get(
                    "Style sheet, scripts and icon",
                    {"200": "the file", "404": "there is no such file"},
                    ["name"],
                    html=False,
                )
            },
            "/healthz": {"get": _get("Whether the server works", {"200": "it does"}, html=False)},
        },
    }


_PERSON = {"200": "the page", "403": "no session; or, the person is excluded"}
_CHANGED = {"303": "changed; continue at /study"}


def _answer_fields(settings: StudySettings) -> Json:
    """Return the fields of the forms of a kind of task."""
    value = {"type": "string", "maxLength": 20}
    fields: Json = {
        "lease": {"type": "string", "maxLength": 40},
        "seconds": {"type": "string"},
        "comment": {"type": "string"},
    }
    if settings.rate is not None:
        fields |= {f"{each.name}-0": value for each in settings.rate.dimensions}
    if settings.write is not None:
        count = sum(slot.count for slot in settings.write.slots)
        fields |= {f"reply-{number}": {"type": "string"} for number in range(count)}
        fields |= {f"pasted-{number}": value for number in range(count)}
    if settings.compare is not None:
        fields["winner"] = {"enum": ["left", "right", "tie"]}
    if settings.diversity is not None:
        fields |= {f"fits-{number}": value for number in range(settings.diversity.replies)}
    if settings.diversity is not None or settings.comprehension is not None:
        fields["rating"] = value
    return fields


def _get(
    summary: str,
    responses: dict[str, str],
    path: list[str] | None = None,
    *,
    query: Json | None = None,
    html: bool = True,
    json: bool = False,
) -> Json:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in path or []
    ]
    parameters += [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in (query or {}).items()
    ]
    return {
        "summary": summary,
        "parameters": parameters,
        "responses": _responses({**EVERYWHERE, **responses}, html=html, json=json),
    }


def _post(
    summary: str,
    responses: dict[str, str],
    fields: Json | None = None,
    required: tuple[str, ...] = (),
) -> Json:
    schema = {
        "type": "object",
        "properties": {"csrf": {"type": "string"}, **(fields or {})},
        "required": ["csrf", *required],
    }
    return {
        "summary": summary,
        "requestBody": {"required": True, "content": {FORM_TYPE: {"schema": schema}}},
        "responses": _responses({**FORMS, **responses}),
    }


def _change_person(summary: str) -> Json:
    responses = {**_CHANGED, "422": "the number is not one"}
    number = {"type": "string", "pattern": "^[0-9]{1,9}$"}
    return _post(summary, responses, {"person": number}, ("person",))


def _responses(described: dict[str, str], *, html: bool = True, json: bool = False) -> Json:
    responses: Json = {}
    for code, description in sorted(described.items()):
        responses[code] = {"description": description}
        if json and code == "200":
            responses[code]["content"] = {"application/json": {}}
        elif (html or code != "200") and code != "303":
            responses[code]["content"] = {"text/html": {}}
    return responses
