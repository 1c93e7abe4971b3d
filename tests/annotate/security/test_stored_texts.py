"""Texts that databases find hard: zero bytes, half characters, very long ones."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from urllib.parse import quote_from_bytes, urlencode

import numpy as np
import pytest

from annotate.rating_studies import open_store
from annotate.security.everything import MANY
from annotate.security.filling import filled_in, hidden
from annotate.studies import make_study
from annotate.web.client import Person, Researcher, browser
from rejoinder.annotate.person_names import clean_name
from rejoinder.annotate.store import Store
from rejoinder.cli.main import run
from rejoinder.errors import UsageError
from rejoinder.verbs import annotate

WRITE = """
kind = 'write'
title = 'Replies'
answers_per_task = 50
[people]
sign_up = 'platform'
[write]
question = 'Write a reply.'
[[write.slots]]
max_characters = 5000
"""
TRICKS = [
    "' OR '1'='1",
    "1; DROP TABLE people",
    "../../answers.sqlite",
    "x" * 60_000,
    "-1",
    "💥",
    "${jndi:ldap://x}",
    "{{7*7}}",
    "\r\nSet-Cookie: a=b",
    "NULL",
    "1e9",
]
FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture
def store(tmp_path: Path, address: str | None) -> Store:
    """A study whose items are hard themselves."""
    records = [
        {
            "id": "\0" + "i" * 5000,
            "context_id": "c\0" * 200,
            "context": ["a\0b \x01\x7f \ufeff\ufffe\U0010ffff", "long " * 20_000],
            "response": "\0",
            "system": "\0" + "s" * 5000,
        }
    ]
    return open_store(make_study(tmp_path / "study", WRITE, records), address)


REPLIES = [
    "nothing special",
    "\ufffe \ufeff \U0010ffff \ue000 noncharacters",
    "be" + "\u0301" * 2000,
    "👩‍👧‍👦" * 600,
    "\u202e right to left \u2066 isolates",
    "'; DROP TABLE answers; --",
    "\\u0000 \\x00 %00 &#0;",
    "x y " * 1250,
]


def test_replies_come_back_as_they_were_written(store: Store) -> None:
    for number, reply in enumerate(REPLIES):
        person = Person(store, f"person-{number}").begin()
        sent = person.send("/answer", {"reply-0": reply, "comment": reply})
        assert sent.headers["rejoinder-answer"] == "stored"
    answers = store.stored_answers()
    for reply, answer in zip(REPLIES, answers, strict=True):
        assert answer.value["replies"] == [unicodedata.normalize("NFC", reply.strip())]
        assert answer.comment == reply.strip()[:2000]
    assert Researcher(store).browser.get("/study/status.json").status_code == 200


def test_control_characters_are_left_out(store: Store) -> None:
    person = Person(store).begin()
    person.send("/answer", {"reply-0": "\x01\x02 controls \x1b[31m\r\nand lines"})
    (answer,) = store.stored_answers()
    assert answer.value["replies"] == ["controls [31m and lines"]


def test_bytes_that_are_no_text_are_refused_in_every_field(store: Store) -> None:
    person = Person(store).begin()
    form = filled_in(person.page(), np.random.default_rng(1))
    for name in ("csrf", "lease", "seconds", "comment", "reply-0", "agree"):
        others = {key: value for key, value in form.items() if key != name}
        for bad in (b"\0", b"a\0b", b"\xff", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"):
            body = f"{urlencode(others)}&{name}={quote_from_bytes(bad)}"
            for path in ("/answer", "/start", "/consent", "/continue"):
                assert person.browser.post(path, content=body, headers=FORM).status_code == 400
    assert store.stored_answers() == []


def test_tricks_with_every_parameter_find_nothing(store: Store) -> None:
    person = Person(store).begin()
    for trick in TRICKS:
        for name in ("lease", "seconds", "comment", "csrf", "pasted-0", "person", "agree"):
            sent = person.send("/answer", {name: trick})
            assert sent.status_code in (403, 404, 413, 422), (name, trick)
            assert "set-cookie" not in sent.headers
    client = browser(store, limits=MANY)
    for number, trick in enumerate([*TRICKS, "%00", "%ff", "%ED%A0%80", "a" * 200]):
        answer = client.get(f"/join?PROLIFIC_PID={trick}".replace("\r\n", "%0d%0a"))
        assert answer.status_code in (303, 400), (number, trick)
        # the random name and value of the study's own cookie may contain any letters
        assert "a" not in client.cookies, trick
        assert len(answer.headers.get_list("set-cookie")) <= 1, trick
        client.cookies.clear()
    researcher = Researcher(store)
    for trick in TRICKS:
        csrf = hidden(researcher.page())["csrf"]
        for action in ("exclude", "include"):
            form = {"csrf": csrf, "person": trick}
            sent = researcher.browser.post(f"/study/{action}", data=form)
            assert sent.status_code in (413, 422)
    assert store.stored_answers() == []
    assert researcher.browser.get("/study").status_code == 200


def test_names_of_people() -> None:
    kept = ["山田　花子", "می‌خواهم", "👩‍👧 mother", "O'Brien <b>", "Đặng Thị", "a\u00a0b"]
    assert [clean_name(name) for name in kept] == [
        "山田 花子", "می‌خواهم", "👩‍👧 mother", "O'Brien <b>", "Đặng Thị", "a b",
    ]  # fmt: skip
    for name in ("", " \u3000", "a\0", "a\nb", "\x1b[31m", "\u202ea", "\ud800", "x" * 81):
        assert clean_name(name) is None


def test_invited_names_that_cannot_be_stored(tmp_path: Path, address: str | None) -> None:
    """Bytes of another encoding on the command line become half characters."""
    folder = make_study(tmp_path / "study", WRITE, [{"id": "1", "context": ["a"], "response": "b"}])
    for name in ("\udcff", "a\0b", "\x1b[2J", " "):
        with pytest.raises(UsageError, match="cannot be used: expected 1 to 200 printable"):
            annotate.invite(folder, names=[name], database=address)
    with pytest.raises(UsageError, match="given twice"):
        annotate.invite(folder, names=["山田 花子", "山田　花子"], database=address)
    assert annotate.invite(folder, names=["山田　花子"], database=address).names == ["山田 花子"]


def test_hostile_names_in_the_table_of_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_study(tmp_path / "study", WRITE, [{"id": "1", "context": ["a"], "response": "b"}])
    store = open_store(folder)
    names = ["[/red]", "[bold]b", "[link=x]y", "\\[c]", "{0}", "%s"]
    for name in names:
        store.sign_up(name)
    assert run(["annotate", "status", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in names)
