"""Forged, replayed and hostile requests; headers, cookies, and what the database keeps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sqlalchemy import event, select

from annotate.web.client import FETCH, Person, Researcher, browser, hidden_fields
from annotate.web.kinds import TABLES, fill_in, items, study
from rejoinder.annotate import schema
from rejoinder.annotate.database import DatabaseFull
from rejoinder.annotate.store import Store
from rejoinder.annotate.web.security import HEADERS
from rejoinder.errors import ResourceError

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HOSTILE = (
    "</textarea></script><script>alert(1)</script><img src=x onerror=alert(1)>'\"{{1337*7331}}"
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return study(tmp_path / "s", "rate")


def test_all_responses_have_the_security_headers(store: Store, monkeypatch) -> None:
    assert HEADERS["content-security-policy"] == POLICY
    ann, researcher = Person(store).begin(), Researcher(store)
    responses = [
        *(ann.browser.get(path) for path in ("/", "/p/x", "/join", "/nowhere", "/healthz")),
        *(ann.browser.get(f"/static/{name}") for name in ("style.css", "task.js", "nothing.js")),
        ann.browser.post("/answer", data={"csrf": "x"}),
        ann.browser.post("/answer", json={}),
        ann.browser.post("/answer", content=b"x" * 100_000),
        ann.browser.put("/answer"),
        ann.send("/answer"),
        ann.send("/answer", {"fit-0": "1"}),
        *(researcher.browser.get(path) for path in ("/study", "/study/status.json")),
    ]
    monkeypatch.setattr(store, "next_step", lambda person: 1 / 0)
    responses.append(ann.browser.get("/"))
    codes = {response.status_code for response in responses}
    assert codes >= {200, 303, 403, 404, 405, 413, 415, 422, 500}
    for response in responses:
        for name, value in HEADERS.items():
            if name != "cache-control" or "/static/" not in str(response.url):
                assert response.headers[name] == value, response.url
    assert "Something went wrong" in responses[-1].text


def test_cookies_are_for_this_study_and_not_for_scripts(store: Store, tmp_path: Path) -> None:
    (token,) = store.invite(["ann"])
    for options, path, secure in (
        ({}, "Path=/;", False),
        ({"base_address": "https://example.org/chat/"}, "Path=/chat;", True),
    ):
        response = browser(store, **options).get(f"/p/{token}")
        cookie = response.headers["set-cookie"]
        assert cookie.startswith(f"rejoinder-{store.study_id}=") and path in cookie
        assert "HttpOnly" in cookie and "SameSite=lax" in cookie and ("Secure" in cookie) is secure
    assert response.headers["location"] == "/chat/"
    other = study(tmp_path / "other", "rate")
    assert other.study_id != store.study_id


def test_a_session_of_another_study_is_none(store: Store, tmp_path: Path) -> None:
    ann = Person(store)
    other = browser(study(tmp_path / "other", "rate"))
    other.cookies.update(dict(ann.browser.cookies))
    assert other.get("/").status_code == 403


@pytest.mark.parametrize("path", ["/answer", "/start", "/consent", "/continue"])
def test_forms_without_the_right_token_are_refused(store: Store, path: str) -> None:
    ann, bob = Person(store, "ann").begin(), Person(store, "bob").begin()
    form = {**hidden_fields(ann.page()), "fit-0": "4"}
    wrong = [
        {**form, "csrf": ""},
        {**form, "csrf": "0" * 64},
        {**form, "csrf": "花子"},
        {**form, "csrf": hidden_fields(bob.page())["csrf"]},
        {name: value for name, value in form.items() if name != "csrf"},
    ]
    for each in wrong:
        response = ann.browser.post(path, data=each)
        assert response.status_code == 403 and "rejoinder-answer" not in response.headers
    for site in ("cross-site", "same-site"):
        response = ann.browser.post(path, data=form, headers={"Sec-Fetch-Site": site})
        assert response.status_code == 403
    stranger = browser(store)
    assert stranger.post(path, data=form).status_code == 403
    stranger.cookies.set(f"rejoinder-{store.study_id}", "0" * 32)
    assert stranger.post(path, data=form).status_code == 403
    assert not store.stored_answers()


def test_sign_ups_need_a_token_too(tmp_path: Path) -> None:
    store = study(tmp_path / "s", "rate", tables="[people]\nsign_up = 'open'\n")
    client = browser(store)
    form = {**hidden_fields(client.get("/join").text), "name": "ann"}
    assert browser(store).post("/join", data=form).status_code == 403
    assert client.post("/join", data={"name": "ann"}).status_code == 403
    headers = {"Sec-Fetch-Site": "cross-site"}
    assert client.post("/join", data=form, headers=headers).status_code == 403


def test_people_are_not_researchers_and_the_other_way_round(store: Store) -> None:
    ann, researcher = Person(store), Researcher(store)
    name = f"rejoinder-{store.study_id}"
    person = ann.browser.cookies[name]
    session = researcher.browser.cookies[f"{name}-researcher"]
    thief = browser(store)
    thief.cookies.set(f"{name}-researcher", person)
    assert thief.get("/study").status_code == thief.get("/study/status.json").status_code == 403
    thief.cookies.set(name, session)
    assert thief.get("/").status_code == 403
    csrf = hidden_fields(ann.page())["csrf"]
    for action in ("pause", "resume", "exclude", "include"):
        form = {"csrf": csrf, "person": "1"}
        assert ann.browser.post(f"/study/{action}", data=form).status_code == 403
    assert not store.paused


def test_tokens_are_stored_as_hashes_only(store: Store, tmp_path: Path) -> None:
    ann, researcher = Person(store), Researcher(store)
    researcher_token = store.secret("researcher", renew=True)
    secret = [ann.token, researcher_token]
    secret += [*dict(ann.browser.cookies).values(), *dict(researcher.browser.cookies).values()]
    assert len(secret) == 4
    store.database.close()
    stored = b"".join(path.read_bytes() for path in (tmp_path / "s").iterdir())
    for token in secret:
        assert token.encode() not in stored
    assert store.has_secret("researcher", researcher_token)


@pytest.mark.parametrize(
    "body",
    [
        b"csrf=%FF%FE",  # no UTF-8
        b"csrf=%ED%A0%80",  # half of a surrogate pair
        b"csrf=\xff",
        b"csrf=a%00b",
        b"%00=a",
        b"&".join(b"f%d=" % number for number in range(3000)),
    ],
)
def test_bodies_that_are_no_text_are_refused(store: Store, body: bytes) -> None:
    ann = Person(store).begin()
    headers = {"content-type": "application/x-www-form-urlencoded"}
    response = ann.browser.post("/answer", content=body, headers=headers)
    assert response.status_code == 400 and "Nothing was stored" in response.text


def test_only_forms_are_read(store: Store) -> None:
    ann = Person(store).begin()
    form = {**hidden_fields(ann.page()), "fit-0": "4"}
    assert ann.browser.post("/answer", json=form).status_code == 415
    assert ann.browser.post("/answer", files={"csrf": b"x"}).status_code == 415
    assert ann.browser.post("/answer", content=b"csrf=x").status_code == 415
    assert ann.browser.get("/answer").status_code == 405
    kind = {"content-type": "Application/X-WWW-Form-Urlencoded; charset=UTF-8"}
    sent = ann.browser.post("/answer", data=form, headers=kind)
    assert sent.headers["rejoinder-answer"] == "stored"


@pytest.mark.parametrize("seconds", ["nan", "-inf", "1e400", "9" * 5000, "-1", "", "x", "０.５"])
def test_strange_numbers_do_no_harm(store: Store, seconds: str) -> None:
    ann = Person(store).begin()
    sent = ann.send("/answer", {"fit-0": "4", "seconds": seconds})
    assert sent.headers["rejoinder-answer"] == "stored"
    (answer,) = store.stored_answers()
    assert 0 <= answer.seconds < 60


@pytest.mark.parametrize("address", ["/p/", "/researcher/", "/static/"])
@pytest.mark.parametrize(
    "name",
    ["..%2f..%2fstudy.toml", "%00", "' OR '1'='1", "%ff", "a" * 5000, "%F0%9F%98%80", "%2e%2e"],
)
def test_tricks_in_addresses_find_nothing(store: Store, address: str, name: str) -> None:
    store.invite(["ann"])
    assert browser(store).get(address + name).status_code == 404


@pytest.mark.parametrize("host", ["[", "evil.example", 'a"><script>', "a b", ""])
def test_any_host_header_is_harmless(tmp_path: Path, host: str) -> None:
    store = study(tmp_path / "s", "rate", tables="[people]\nsign_up = 'open'\n")
    client = browser(store)
    form = {**hidden_fields(client.get("/join").text), "name": "ann"}
    response = client.post("/join", data=form, headers={"Host": host})
    assert response.status_code == 200 and "<script>" not in response.text
    assert "evil.example" not in response.headers.get("location", "")


@pytest.mark.parametrize("kind", list(TABLES))
def test_hostile_texts_are_shown_as_text(kind: str, tmp_path: Path) -> None:
    replies = [f"{HOSTILE} {number}" for number in range(4)]
    records = items(kind, replies, [HOSTILE, "b", HOSTILE])
    title = '"""' + HOSTILE.replace('"', '\\"') + '"""'
    store = study(tmp_path / "s", kind, records=records, title=title)
    person = Person(store, HOSTILE).begin()
    pages = [person.page()]
    wrong = {"comment": HOSTILE, "reply-0": HOSTILE, "rating": HOSTILE, "winner": HOSTILE}
    pages.append(person.send("/answer", {**wrong, "fit-0": HOSTILE, "fits-0": "1"}).text)
    pages.append(person.send("/answer", {**fill_in(kind), "comment": HOSTILE}, headers=FETCH).text)
    pages.append(Researcher(store).page())
    for page in pages:
        assert "<img src=x" not in page and "<script>" not in page
        assert not re.search(r"<script[^>]*>[^<]", page) and "9801547" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in pages[0]


def test_a_full_disk_is_said_and_nothing_is_lost(store: Store) -> None:
    ann = Person(store).begin()
    with store.database.reading() as connection:
        allowed = [connection.exec_driver_sql("PRAGMA page_count").scalar()]

    def allow(connection, *_: object) -> None:
        # SQLite says that the disk is full when the file may not grow any more
        connection.execute(f"PRAGMA max_page_count = {allowed[0]}")

    event.listen(store.database.engine, "checkout", allow)
    stored = 0
    while True:
        form = {**hidden_fields(ann.page()), "fit-0": "4", "comment": "x" * 2000}
        response = ann.browser.post("/answer", data=form)
        if response.headers.get("rejoinder-answer") != "stored":
            break
        stored += 1
    assert response.status_code == 507 and "rejoinder-answer" not in response.headers
    assert "What you sent was not stored" in response.text
    assert len(store.stored_answers()) == stored
    allowed[0] = 1_000_000
    assert ann.browser.post("/answer", data=form).headers["rejoinder-answer"] == "stored"
    assert len(store.stored_answers()) == stored + 1


@pytest.mark.parametrize("error, code", [(DatabaseFull("x"), 507), (ResourceError("x"), 503)])
def test_a_database_that_fails_is_not_a_fault_of_the_page(
    store: Store, monkeypatch, error: Exception, code: int
) -> None:
    ann = Person(store).begin()

    async def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(store, "submit_of_session", fail)
    response = ann.send("/answer", {"fit-0": "4"})
    assert response.status_code == code and "it will be sent again" in response.text
    assert "rejoinder-answer" not in response.headers


def test_names_are_apart_from_answers(store: Store) -> None:
    Person(store, "Ann Archer").begin().send("/answer", {"fit-0": "4"})
    with store.database.reading() as connection:
        for table in schema.tables.sorted_tables:
            if table.name != "names":
                assert "Archer" not in str(connection.execute(select(table)).all())
