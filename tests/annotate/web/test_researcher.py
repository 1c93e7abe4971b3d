"""The researcher's page: progress, people, agreement, and its buttons."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from annotate.rating_studies import join, open_store
from annotate.studies import answer_next, make_study
from annotate.web.client import Person, Researcher, browser
from annotate.web.kinds import TABLES, fill_in, study
from rejoinder.annotate.status import study_status, to_record
from rejoinder.annotate.web.researcher import RecentStatus

GOOD = {"x": 4, "y": 2}


def rated(tmp_path: Path, language: str = "en"):
    """A study with two careful people and one who rates the other way round."""
    settings = f"kind = 'rate'\ntitle = 'S'\nlanguage = '{language}'\nanswers_per_task = 3\n"
    records = [
        {
            "id": f"{c}{s}",
            "context_id": str(c),
            "context": ["c"],
            "response": f"{c} {s}",
            "system": s,
        }
        for c in range(8)
        for s in GOOD
    ]
    store = open_store(make_study(tmp_path / "s", settings + TABLES["rate"], records))
    for name, upside_down in (("ann", False), ("bob", False), ("eve", True)):
        person = join(store, name)

        def form(step, upside_down=upside_down) -> dict[str, str]:
            (reply,) = step.task.content["replies"]
            rating = GOOD.get(reply["system"], 1) + (int(reply["text"][0]) % 2)
            return {"fit-0": str(6 - rating if upside_down else rating)}

        while answer_next(store, person, form).step == "task":
            pass
    store.invite(["new <b>"])
    return store


def test_the_page_shows_what_the_status_says(tmp_path: Path) -> None:
    store = rated(tmp_path)
    status = study_status(store)
    page = Researcher(store).page()
    # 8 contexts of 2 replies and a distractor, 3 answers each
    assert "72 of 72" in page and "24 of 24" in page and "finished" in page
    assert "new &lt;b&gt;" in page and "reads the instructions" in page
    for system in status.ranking:
        assert f"{system.mean:.2f}" in page
    assert f"{status.agreement.alpha:.2f}".replace("-", "−") in page
    (left_out,) = [person for person in status.people if person.unreliable]
    assert left_out.name == "eve" and "Would be left out: eve." in page
    assert status.without_unreliable is not None
    assert f"{status.without_unreliable.alpha:.2f}" in page
    assert 'style="' not in page
    assert page.count('<circle class="dot"') == len(status.ranking) == 3


def test_the_same_as_json(tmp_path: Path) -> None:
    store = rated(tmp_path)
    response = Researcher(store).browser.get("/study/status.json")
    assert response.headers["content-type"] == "application/json"
    expected = json.loads(json.dumps(to_record(study_status(store))))
    told = response.json()
    for name in ("tasks", "answers", "people", "agreement", "ranking"):
        assert told[name] == expected[name]


def test_the_buttons(tmp_path: Path) -> None:
    store = rated(tmp_path)
    researcher = Researcher(store)
    assert researcher.send("pause").headers["location"] == "/study"
    assert store.paused and "paused</p>" in researcher.page()
    researcher.send("resume")
    assert not store.paused
    eve = store.find_person("eve")
    researcher.send("exclude", person=str(eve))
    assert len(store.stored_answers()) == 48 and "Include again" in researcher.page()
    assert "48 of 72" in researcher.page()
    researcher.send("include", person=str(eve))
    assert len(store.stored_answers()) == 72 and "Include again" not in researcher.page()


@pytest.mark.parametrize("person", ["", "-1", "1.5", "x", "9" * 30, "²", "１"])
def test_numbers_of_people_are_checked(tmp_path: Path, person: str) -> None:
    store = study(tmp_path / "s", "rate")
    assert Researcher(store).send("exclude", person=person).status_code == 422


def test_a_person_who_does_not_exist_cannot_be_excluded(tmp_path: Path) -> None:
    store = study(tmp_path / "s", "rate")
    assert Researcher(store).send("exclude", person="999999999").status_code == 303


def test_only_the_link_opens_the_page(tmp_path: Path) -> None:
    store = study(tmp_path / "s", "rate")
    client = browser(store)
    assert client.get("/study").status_code == 403
    assert client.get("/researcher/wrong").status_code == 404
    assert "This is the researcher's page".replace("'", "&#39;") in client.get("/study").text
    old = store.secret("researcher")
    new = store.secret("researcher", renew=True)
    assert client.get(f"/researcher/{old}").status_code == 404
    assert client.get(f"/researcher/{new}").status_code == 303
    assert client.get("/study").status_code == 200


@pytest.mark.parametrize("kind", list(TABLES))
@pytest.mark.parametrize("language", ["en", "ja", "zh"])
def test_all_kinds_and_languages_have_the_page(tmp_path: Path, kind: str, language: str) -> None:
    store = study(tmp_path / "s", kind, settings=f"language = '{language}'")
    researcher = Researcher(store)
    assert researcher.browser.get("/study").status_code == 200
    ann = Person(store).begin()
    ann.send("/answer", {"reply-0": "x"})
    ann.send("/answer", fill_in(kind))
    response = researcher.browser.get("/study", headers={"Rejoinder-Request": "fragment"})
    assert response.status_code == 200 and "<html" not in response.text


def test_the_status_is_computed_at_most_every_few_seconds() -> None:
    now, calls = [0.0], []

    def compute():
        calls.append(now[0])
        now[0] += 1.0
        return len(calls)

    recent = RecentStatus(compute, lambda: now[0])
    # the first took a second, so it is good for five more: until 6
    for time, expected in ((0.0, 1), (5.9, 1), (6.0, 2), (7.5, 2)):
        now[0] = max(now[0], time)
        assert recent.get() == expected
    recent.forget()
    assert recent.get() == 3
