"""The description of the server is complete, and generated requests never find a fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from starlette.routing import Route

from annotate.web.client import Person, Researcher, browser, hidden_fields
from annotate.web.kinds import TABLES, study
from rejoinder.annotate.store import Store
from rejoinder.annotate.web.app import make_app
from rejoinder.annotate.web.limits import Limits
from rejoinder.annotate.web.openapi import openapi

OPEN = "[people]\nsign_up = 'open'\n"
MANY = Limits(sign_ups=10**6, all_sign_ups=10**6, wrong_links=10**6)


def methods(store: Store) -> set[tuple[str, str]]:
    """The addresses of the application with their methods."""
    return {
        (route.path, method.lower())
        for route in make_app(store).routes
        if isinstance(route, Route) and route.methods
        for method in route.methods - {"HEAD"}
    }


@pytest.mark.parametrize("kind", list(TABLES))
def test_every_route_is_described_and_every_description_has_a_route(
    kind: str, tmp_path: Path
) -> None:
    store = study(tmp_path / "s", kind)
    document = openapi(store.settings)
    described = {(path, method) for path, each in document["paths"].items() for method in each}
    assert described == methods(store)


def operations(document: dict[str, Any]) -> list[Any]:
    schema = schemathesis.openapi.from_dict(document)
    return [found.ok() for found in schema.get_all_operations()]


def forms_are_described(store: Store, html: str) -> bool:
    """Return whether the fields of the shown form are in the description of /answer."""
    content = openapi(store.settings)["paths"]["/answer"]["post"]["requestBody"]["content"]
    (each,) = content.values()
    return set(hidden_fields(html)) <= set(each["schema"]["properties"])


@pytest.mark.parametrize("kind", list(TABLES))
def test_generated_requests_never_give_a_fault(kind: str, tmp_path: Path) -> None:
    store = study(tmp_path / "s", kind, tables=OPEN, training=True)
    client = browser(store, limits=MANY)
    person = Person(store, client=client).begin()
    assert forms_are_described(store, person.page())
    client.cookies.update(dict(Researcher(store).browser.cookies))
    newcomer = browser(store, limits=MANY)
    senders = {
        "/join": (newcomer, hidden_fields(newcomer.get("/join").text)["csrf"]),
        "/study": (client, hidden_fields(client.get("/study").text)["csrf"]),
        "": (client, hidden_fields(person.page())["csrf"]),
    }
    tested = operations(openapi(store.settings))
    assert len(tested) == len(methods(store))
    for operation in tested:
        if kind != "rate" and operation.path != "/answer":
            continue  # the other addresses are the same for all kinds
        sender, token = next(
            each for path, each in senders.items() if operation.path.startswith(path)
        )
        has_body = "requestBody" in operation.definition.raw  # any text is right in an address
        for mode in list(GenerationMode) if has_body else [GenerationMode.POSITIVE]:
            _send_many(sender, operation, mode, token, person)
    assert client.get("/healthz").text in ("ok", "paused")


def test_generated_requests_of_strangers_change_nothing(tmp_path: Path) -> None:
    store = study(tmp_path / "s", "rate", tables=OPEN)
    person = Person(store).begin()
    stranger = browser(store, limits=MANY)
    for operation in operations(openapi(store.settings)):
        for mode in GenerationMode if "requestBody" in operation.definition.raw else ():
            _send_many(stranger, operation, mode, "0" * 64, person)
    assert not store.stored_answers() and not store.paused
    assert list(store.labels().values()) == ["ann"]


def test_generated_requests_on_postgresql(tmp_path: Path, postgres_database: str) -> None:
    tables = "[people]\nsign_up = 'platform'\n"
    store = study(tmp_path / "s", "write", tables=tables, address=postgres_database)
    client = browser(store, limits=MANY)
    person = Person(store, client=client).begin()
    csrf = hidden_fields(person.page())["csrf"]
    for operation in operations(openapi(store.settings)):
        if operation.path in ("/answer", "/join", "/p/{token}"):
            _send_many(client, operation, GenerationMode.POSITIVE, csrf, person)


def _send_many(client: Any, operation: Any, mode: GenerationMode, csrf: str, ann: Person) -> None:
    @settings(
        max_examples=25,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), known=st.booleans())
    def send(case: Any, known: bool) -> None:
        if known and isinstance(case.body, dict):  # reach what is behind the check of the token
            case.body["csrf"] = csrf
            if operation.path == "/answer":
                case.body |= {"lease": hidden_fields(ann.page()).get("lease", "")}
        sent = case.as_transport_kwargs(base_url="http://testserver")
        allowed = ("method", "url", "headers", "params", "data", "json", "content")
        values = {name: sent[name] for name in allowed if sent.get(name) is not None}
        if isinstance(values.get("data"), bytes | str):
            values["content"] = values.pop("data")
        response = client.request(**values)
        assert response.status_code < 500, (values, response.text)
        described = {int(code) for code in operation.definition.raw["responses"]}
        assert response.status_code in described | {404, 405}, values
        if response.status_code == 200 and operation.path != "/static/{name}":
            kinds = operation.definition.raw["responses"]["200"].get("content", {"text/plain": {}})
            assert response.headers["content-type"].partition(";")[0] in kinds

    send()
