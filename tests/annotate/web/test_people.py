"""What people see and send: from the first page to the last task."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from sqlalchemy import func, select
from starlette.testclient import TestClient

from annotate.rating_studies import open_store
from annotate.web.client import FETCH, Person, Researcher, browser, hidden_fields
from annotate.web.kinds import EXPECTED, TABLES, fill_in, radio, study
from rejoinder.annotate import schema
from rejoinder.annotate.store import Store
from rejoinder.annotate.web.app import make_app
from rejoinder.annotate.web.limits import Limits


def count(store: Store, table: object) -> int:
    with store.database.reading() as connection:
        return connection.scalar(select(func.count()).select_from(table))


TASKS = {"rate": 10, "compare": 12, "diversity": 2, "comprehension": 2, "write": 2}
"""rate: (4 replies + 1 distractor) of 2 contexts; compare: 6 pairs of 2 contexts; otherwise 2 sets
or contexts."""


@pytest.mark.parametrize("kind", list(TABLES))
def test_a_person_answers_all_tasks_of_a_kind(
    kind: str, tmp_path: Path, address: str | None
) -> None:
    store = study(tmp_path / "s", kind, settings="tasks_per_batch = 100", address=address)
    ann = Person(store)
    assert "Read, then answer." in ann.page()
    assert ann.send("/start").headers["location"] == "/"
    number = 0
    while "<form" in (page := ann.page()):
        assert f"Task {number + 1} of {TASKS[kind]}" in page
        sent = ann.send("/answer", fill_in(kind, number))
        assert sent.status_code == 303 and sent.headers["location"] == "/", sent.text
        assert sent.headers["rejoinder-answer"] == "stored"
        number += 1
    assert number == TASKS[kind]
    assert f"Tasks done: {number}." in ann.page()
    assert len(store.stored_answers()) == number
    assert Researcher(store).browser.get("/study").status_code == 200


@pytest.mark.parametrize("kind", list(TABLES))
def test_a_refused_answer_comes_back_with_the_reason_and_what_was_entered(
    kind: str, tmp_path: Path
) -> None:
    store = study(tmp_path / "s", kind)
    ann = Person(store).begin()
    form = {"diversity": {"fits-1": "1", "fits-2": "1"}, "write": {"reply-0": "x", "reply-1": "y"}}
    sent = ann.send("/answer", {"comment": "what is <b>this?", **form.get(kind, {})})
    field = {"rate": "fit-0", "write": "reply-0", "compare": "winner"}.get(kind, "rating")
    assert sent.status_code == 422 and sent.headers["rejoinder-answer"] == "refused"
    assert f'<a href="#field-{field}">' in sent.text and f'id="error-{field}"' in sent.text
    assert "what is &lt;b&gt;this?</textarea>" in sent.text
    assert f"Task 1 of {TASKS[kind]}" in sent.text
    assert not store.stored_answers()
    if kind == "diversity":
        assert sent.text.count(" checked") == 2
    if kind == "write":
        assert "This reply has 1 characters; it needs at least 2." in sent.text
        assert ">x</textarea>" in sent.text


@pytest.mark.parametrize("kind", list(TABLES))
def test_the_training_round_shows_the_expected_answer(kind: str, tmp_path: Path) -> None:
    store = study(tmp_path / "s", kind, training=True)
    ann = Person(store).begin()
    assert "Practice task 1 of 1" in ann.page()
    form = {**hidden_fields(ann.page()), **fill_in(kind)}
    for _ in range(2):  # a form that is sent twice gets the same page
        sent = ann.browser.post("/answer", data=form)
        assert sent.status_code == 200 and "That is why." in sent.text
        assert f'class="feedback {"right" if kind == "write" else "wrong"}"' in sent.text or (
            kind == "compare"
        )
        assert "<form" not in sent.text
    marks = sent.text.count('<span class="hidden">expected answer</span>')
    if kind == "write":
        assert "A good example." in sent.text and not marks
    elif kind == "diversity":  # three replies fit, and one rating is right
        assert marks == 4
    else:
        assert marks == len(EXPECTED[kind][0] if kind == "rate" else EXPECTED[kind])
    assert f"Task 1 of {TASKS[kind]}" in ann.page()
    assert not store.stored_answers()


def test_the_expected_side_of_a_pair_is_where_it_was_shown(tmp_path: Path) -> None:
    store = study(tmp_path / "s", "compare", training=True)
    for name in ("ann", "bob", "cat", "dan", "eve"):
        person = Person(store, name).begin()
        page = person.page()
        side = "left" if page.index("Yes, hundreds!") < page.index("I like turtles.") else "right"
        sent = person.send("/answer", {"winner": side})
        assert 'class="feedback right"' in sent.text
        assert "checked" in radio(sent.text, "winner", side)
        _, _, label = sent.text.partition('<label class="side expected">')
        assert f'value="{side}"' in label.partition("</label>")[0]


def test_who_fails_the_entrance_test_does_not_go_on(tmp_path: Path) -> None:
    known = {"context": ["a"], "replies": ["b"], "expected": [[5]], "explanation": ""}
    tables = "[training]\ntest = 'test.jsonl'\npass_share = 0.5\n"
    store = study(tmp_path / "s", "rate", tables=tables, files={"test.jsonl": [known] * 2})
    for name, rating, page in (("ann", "1", "Thank you for your time"), ("bob", "5", "Task 1 of")):
        person = Person(store, name).begin()
        assert "Test task 1 of 2" in person.page()
        for _ in range(2):
            person.send("/answer", {"fit-0": rating})
        assert page in person.page()


def test_a_fetched_answer_gets_the_next_task_at_once(tmp_path: Path) -> None:
    ann = Person(study(tmp_path / "s", "rate")).begin()
    first = hidden_fields(ann.page())["lease"]
    sent = ann.send("/answer", {"fit-0": "4"}, headers=FETCH)
    assert sent.status_code == 200 and sent.headers["rejoinder-answer"] == "stored"
    assert "<html" not in sent.text and '<main id="content"' in sent.text
    assert hidden_fields(sent.text)["lease"] != first
    assert hidden_fields(sent.text)["lease"] == hidden_fields(ann.page())["lease"]


def test_an_answer_that_is_sent_again_is_stored_once(tmp_path: Path) -> None:
    store = study(tmp_path / "s", "rate")
    ann = Person(store).begin()
    form = {**hidden_fields(ann.page()), "fit-0": "2"}
    outcomes = [
        ann.browser.post("/answer", data={**form, "fit-0": rating}).headers["rejoinder-answer"]
        for rating in ("2", "2", "5")
    ]
    assert outcomes == ["stored", "repeated", "repeated"]
    (answer,) = store.stored_answers()
    assert answer.value == {"ratings": [{"fit": 2}]}


def test_consent_comes_first_and_needs_the_box(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    study(folder, "rate")
    (folder / "consent.md").write_text("We store **everything**. <script>x</script>")
    settings = (folder / "study.toml").read_text()
    (folder / "study.toml").write_text("consent = 'consent.md'\n" + settings)
    ann = Person(open_store(folder))
    assert "<strong>everything</strong>. &lt;script&gt;" in ann.page()
    assert "Read, then answer." not in ann.page()
    refused = ann.send("/consent")
    assert refused.status_code == 422 and 'aria-describedby="error-agree"' in refused.text
    assert ann.send("/consent", {"agree": "1"}).status_code == 303
    assert "Read, then answer." in ann.page()


def test_batches_end_with_the_completion_code(tmp_path: Path) -> None:
    tables = "[people]\ncompletion_code = 'C0DE'\nmax_tasks = 3\n"
    store = study(tmp_path / "s", "rate", settings="tasks_per_batch = 2", tables=tables)
    ann = Person(store).begin()
    assert "C0DE" not in ann.page()
    for _ in range(2):
        ann.send("/answer", {"fit-0": "4"})
    assert "You have finished a set of tasks" in ann.page() and "C0DE" in ann.page()
    assert ann.send("/continue").status_code == 303
    assert "C0DE" not in ann.page() and "Task 1 of 1" in ann.page()  # of 3 in all
    ann.send("/answer", {"fit-0": "4"})
    assert "Tasks done: 3." in ann.page() and "C0DE" in ann.page()


def test_nobody_gets_the_completion_code_for_nothing(tmp_path: Path) -> None:
    tables = "[people]\ncompletion_code = 'C0DE'\n"
    store = study(tmp_path / "s", "comprehension", tables=tables)
    ann, bob = Person(store, "ann").begin(), Person(store, "bob").begin()
    for _ in range(2):
        ann.send("/answer", {"rating": "4"})
    assert "C0DE" in ann.page()
    assert "No tasks at the moment" in bob.page() and "C0DE" not in bob.page()


def test_paused_studies_and_excluded_people(tmp_path: Path) -> None:
    store = study(tmp_path / "s", "rate")
    ann = Person(store).begin()
    form = {**hidden_fields(ann.page()), "fit-0": "4"}
    store.pause(True)
    assert "The study is paused" in ann.page()
    assert ann.browser.post("/answer", data=form).headers["rejoinder-answer"] == "stored"
    store.pause(False)
    form = {**hidden_fields(ann.page()), "fit-0": "4"}
    store.exclude(1, True)
    for response in (ann.browser.get("/"), ann.browser.post("/answer", data=form)):
        assert response.status_code == 403 and "You no longer take part" in response.text
    assert not store.stored_answers()


def test_somebody_elses_task_is_refused(tmp_path: Path) -> None:
    store = study(tmp_path / "s", "rate")
    ann, bob = Person(store, "ann").begin(), Person(store, "bob").begin()
    lease = hidden_fields(ann.page())["lease"]
    sent = bob.send("/answer", {"lease": lease, "fit-0": "4"})
    assert sent.status_code == 404 and sent.headers["rejoinder-answer"] == "unknown"
    assert bob.send("/answer", {"lease": "x' OR 1=1 --", "fit-0": "4"}).status_code == 404
    assert not store.stored_answers()


def test_coming_back_continues_where_the_person_was(tmp_path: Path) -> None:
    store = study(tmp_path / "s", "rate")
    ann = Person(store).begin()
    ann.send("/answer", {"fit-0": "4"})
    lease = hidden_fields(ann.page())["lease"]
    other = browser(store)
    other.get(f"/p/{ann.token}")
    page = other.get("/").text
    assert "Task 2 of 10" in page and hidden_fields(page)["lease"] == lease


def test_a_link_that_is_opened_again_needs_no_second_session(tmp_path: Path) -> None:
    store = study(tmp_path / "s", "rate")
    ann = Person(store)
    for _ in range(3):
        ann.browser.get(f"/p/{ann.token}")
    assert count(store, schema.sessions) == 1


def test_open_sign_up(tmp_path: Path, address: str | None) -> None:
    tables = "[people]\nsign_up = 'open'\nmax_people = 1\n"
    store = study(tmp_path / "s", "rate", tables=tables, address=address)
    client = browser(store)
    assert client.get("/").headers["location"] == "/join"
    form = hidden_fields(client.get("/join").text)
    for name in ("", "   ", "a\nb", "x" * 81, "\x07"):
        refused = client.post("/join", data={**form, "name": name})
        assert refused.status_code == 422 and "ordinary characters" in refused.text
    welcome = client.post("/join", data={**form, "name": "  <b>花子</b> "})
    assert welcome.status_code == 200 and "Welcome, &lt;b&gt;花子&lt;/b&gt;!" in welcome.text
    assert "Read, then answer." in client.get("/").text
    # the form was sent twice: still one person, who goes on
    again = client.post("/join", data={**form, "name": "花子"})
    assert (again.status_code, again.headers["location"]) == (303, "/")
    assert client.get("/join").headers["location"] == "/"
    assert count(store, schema.people) == 1
    # the personal link works in another browser
    link = welcome.text.partition('value="http://testserver')[2].partition('"')[0]
    other = browser(store)
    assert other.get(link).status_code == 303 and "Read, then answer." in other.get("/").text
    # the study is full
    third = browser(store)
    form = {**hidden_fields(third.get("/join").text), "name": "late"}
    assert third.post("/join", data=form).status_code == 403


def test_people_of_a_platform_come_with_their_id(tmp_path: Path, address: str | None) -> None:
    store = study(
        tmp_path / "s", "rate", tables="[people]\nsign_up = 'platform'\n", address=address
    )
    for wrong in ("", "?PROLIFIC_PID=", f"?PROLIFIC_PID={'x' * 201}", "?PROLIFIC_PID=a%00b"):
        response = browser(store).get(f"/join{wrong}")
        assert response.status_code == 400 and "PROLIFIC_PID=" in response.text
    for _ in range(2):  # the same person in two browsers
        client = browser(store)
        response = client.get("/join?PROLIFIC_PID=5a9b&STUDY_ID=1")
        assert (response.status_code, response.headers["location"]) == (303, "/")
        assert "Read, then answer." in client.get("/").text
    assert count(store, schema.people) == 1
    assert client.post("/join", data={"name": "x"}).status_code == 404


def test_a_platforms_person_who_comes_twice_at_once_is_one_person(
    tmp_path: Path, address: str | None
) -> None:
    store = study(
        tmp_path / "s", "rate", tables="[people]\nsign_up = 'platform'\n", address=address
    )
    app = make_app(store)
    found: list[int] = []

    def come() -> None:
        client = TestClient(app, follow_redirects=False, raise_server_exceptions=False)
        found.append(client.get("/join?PROLIFIC_PID=5a9b").status_code)

    threads = [threading.Thread(target=come) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [303] * 8
    assert count(store, schema.people) == 1


def test_invited_people_only(tmp_path: Path) -> None:
    store = study(tmp_path / "s", "rate")
    client = browser(store)
    assert client.get("/join").status_code == 404
    assert client.post("/join", data={"name": "x"}).status_code == 404
    assert "Please open your personal link" in client.get("/").text
    assert client.get("/p/wrong").status_code == 404
    assert count(store, schema.people) == 0


def test_a_thousand_sign_ups_do_not_fill_the_database(tmp_path: Path) -> None:
    store = study(tmp_path / "s", "rate", tables="[people]\nsign_up = 'open'\n")
    client = browser(store)
    form = {**hidden_fields(client.get("/join").text), "name": "robot"}
    visitor = dict(client.cookies)
    codes = []
    for _ in range(1000):
        client.cookies.clear()
        client.cookies.update(visitor)
        codes.append(client.post("/join", data=form).status_code)
    assert codes == [200] * 20 + [429] * 980
    assert count(store, schema.people) == 20


def test_all_addresses_together_are_limited_too(tmp_path: Path) -> None:
    store = study(tmp_path / "s", "rate", tables="[people]\nsign_up = 'platform'\n")
    client = browser(store, limits=Limits(sign_ups=100, all_sign_ups=3))
    codes = [client.get(f"/join?PROLIFIC_PID={number}").status_code for number in range(5)]
    assert codes == [303, 303, 303, 429, 429]
    # who is known comes in all the same
    assert client.get("/join?PROLIFIC_PID=1").status_code == 303


def test_guessed_links_are_limited(tmp_path: Path) -> None:
    store = study(tmp_path / "s", "rate")
    (token,) = store.invite(["ann"])
    client = browser(store)
    codes = [client.get(f"/p/guess-{number}").status_code for number in range(40)]
    codes += [client.get(f"/researcher/guess-{number}").status_code for number in range(40)]
    assert codes == [404] * 60 + [429] * 20
    # a right guess does not help any more, until the minute is over
    assert client.get(f"/p/{token}").status_code == 429
    assert not client.cookies
