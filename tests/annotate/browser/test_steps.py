"""What people see beside tasks: sign-up, consent, training, test, pause and the end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from annotate.browser.conftest import Serve, dialogues
from annotate.browser.live import LiveStudy, init, live, visitor, write_lines

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.xdist_group("browser")

Link = Callable[[LiveStudy], str]


def test_consent_comes_first(browser: Browser, serve: Serve, link: Link) -> None:
    """Nobody goes on without agreeing; then instructions, which can be opened again later."""
    study = serve("gupta-ratings", "--consent", "--training")
    address = link(study)
    with visitor(browser, address) as ann:
        assert ann.page.locator("h1").inner_text() == "Before you begin"
        ann.press("Agree and continue")
        assert "tick the box" in ann.page.get_by_role("alert").inner_text()
        assert ann.page.evaluate("document.activeElement.name") == "agree"
        ann.page.get_by_label("I have read this").check()
        ann.press("Agree and continue")
        assert ann.page.locator("h1").inner_text() == "Instructions"
        assert not ann.page.locator("details.instructions").count()
        ann.begin()
        assert "Practice task 1 of 4" in ann.text
        again = ann.page.locator("details.instructions")
        assert not again.locator(".text").is_visible()
        again.locator("summary").click()
        assert again.locator(".text").is_visible()
    with visitor(browser, address) as ann:  # agreed once is enough
        assert "Practice task 1 of 4" in ann.text


def test_training_shows_the_expected_answer(browser: Browser, serve: Serve, link: Link) -> None:
    """After each practice task: was it as expected, what was, and why; it is not counted."""
    study = serve("gupta-quality", "--training")
    with visitor(browser, link(study)) as ann:
        ann.begin()
        for number in range(1, 4):
            assert f"Practice task {number} of 3" in ann.text
            for place in range(ann.page.locator("fieldset").count()):
                ann.choose(f"appropriateness-{place}", 3)
            ann.send()
            assert "We expected another answer" in ann.text
            assert ann.page.locator(".explanation").inner_text()
            top = "document.getElementById('feedback').getBoundingClientRect().top"
            assert ann.page.evaluate(top) >= 0  # in view, although the button has the focus
            chosen = ann.page.locator("input:checked").all()
            assert all(each.get_attribute("value") == "3" for each in chosen)
            assert all(each.is_disabled() for each in chosen)
            expected = ann.page.locator(".step.expected input").all()
            assert {e.get_attribute("name") for e in expected} == {
                e.get_attribute("name") for e in chosen
            }
            assert ann.page.evaluate("document.activeElement.textContent") == "Continue"
            ann.changed(lambda: ann.page.keyboard.press("Enter"))
        assert "Task 1 of 6" in ann.text
    assert study.status()["answers"] == 0


def test_right_answers_of_the_training_are_praised(
    browser: Browser, serve: Serve, link: Link
) -> None:
    study = serve("sugiyama-pairs", "--training")
    with visitor(browser, link(study)) as ann:
        ann.begin()
        replies = ann.page.locator(".reply").all_inner_texts()
        kind = next(
            side for side, text in zip(("left", "right"), replies, strict=True) if "!" in text
        )
        ann.choose("winner", kind)
        ann.send()
        assert "As expected" in ann.text
        assert ann.page.locator(".side.expected input").get_attribute("value") == kind


KNOWN = [
    {"context": ["Tea?"], "replies": ["Yes, please."], "expected": [[4, 5]]},
    {"context": ["Tea?"], "replies": ["Roofs are red."], "expected": [[1, 2]]},
]


def test_the_entrance_test_decides(browser: Browser, tmp_path: Path) -> None:
    """With both answers right a person goes on; with one of two the study ends for them."""
    source = write_lines(tmp_path / "items.jsonl", dialogues(2))
    folder = init(tmp_path / "study", "gupta-ratings", source)
    write_lines(folder / "test.jsonl", KNOWN)
    settings = folder / "study.toml"
    settings.write_text(settings.read_text().replace('test = ""', 'test = "test.jsonl"'))
    with live(folder) as study:
        good, bad = study.invite("good", "bad")
        for address, first in ((good, "5"), (bad, "1")):
            with visitor(browser, address) as person:
                person.begin()
                for number in (1, 2):
                    assert f"Test task {number} of 2" in person.text
                    kind = "Yes" in person.page.locator(".reply").inner_text()
                    person.choose("appropriateness-0", first if kind else "1")
                    person.send()
                    assert "expected" not in person.text.lower() or number == 2
                if address == good:
                    assert "Task 1 of 6" in person.text
                else:
                    assert "Thank you for your time" in person.text
                    person.page.reload()
                    assert not person.on_task
        stages = {each["name"]: each["stage"] for each in study.status()["people"]}
        assert stages == {"good": "work", "bad": "failed"}


def test_a_batch_ends_with_the_code(browser: Browser, ratings: LiveStudy, link: Link) -> None:
    """Three tasks, the code, and three more for who likes; a reload shows the code again."""
    with visitor(browser, link(ratings)) as ann:
        ann.begin()
        for number in (1, 2, 3):
            assert f"Task {number} of 3" in ann.text
            ann.choose("appropriateness-0", 3)
            ann.send()
        assert "Thank you!" in ann.text
        assert ann.page.locator("output.code").inner_text() == "DONE-42"
        ann.page.reload()
        assert ann.page.locator("output.code").inner_text() == "DONE-42"
        ann.press("Continue with another set")
        assert "Task 1 of 3" in ann.text


def test_the_end(browser: Browser, serve: Serve, link: Link) -> None:
    """The last task is followed by thanks; who comes later finds no task, and reads why."""
    study = serve("ruber-satisfaction", items=dialogues(1)[:2], answers_per_task=1)
    with visitor(browser, link(study)) as ann:
        ann.begin()
        assert "Task 1 of 2" in ann.text  # a batch would have 50, but there are only two
        assert ann.answer_all(lambda each: each.choose("satisfaction-0", 1)) == 2
        assert "All done. Thank you!" in ann.text
        assert "Tasks done: 2" in ann.text
    with visitor(browser, link(study)) as late:
        late.begin()
        assert "No tasks at the moment" in late.text


def test_open_sign_up(browser: Browser, serve: Serve) -> None:
    """Everybody with the public address takes part; a personal link leads back later."""
    study = serve("gupta-ratings", people__sign_up="open")
    with visitor(browser, f"{study.server.address}/") as ann:
        assert ann.page.url.endswith("/join")
        ann.page.get_by_label("Name or nickname").fill("Ann <b>Other</b>")
        ann.press("Sign up")
        assert "Ann <b>Other</b>" in ann.text
        address = ann.page.get_by_label("Your personal link").input_value()
        ann.press("Continue")
        ann.begin()
        lease = ann.lease
    with visitor(browser, address) as ann:
        assert ann.lease == lease
    assert [each["name"] for each in study.status()["people"]] == ["Ann <b>Other</b>"]


def test_people_of_a_platform(browser: Browser, serve: Serve) -> None:
    """The platform's id in the address is the person; the code leads back to the platform."""
    study = serve(
        "gupta-ratings",
        people__sign_up="platform",
        people__completion_code="C0DE",
        tasks_per_batch=1,
    )
    address = f"{study.server.address}/join?PROLIFIC_PID=5f3c&STUDY_ID=1&SESSION_ID=2"
    with visitor(browser, address) as ann:
        ann.begin()
        ann.choose("appropriateness-0", 4)
        ann.send()
        assert ann.page.locator("output.code").inner_text() == "C0DE"
    with visitor(browser, address) as ann:  # on another device
        assert ann.page.locator("output.code").inner_text() == "C0DE"
    assert [each["name"] for each in study.status()["people"]] == ["5f3c"]
    with visitor(browser, f"{study.server.address}/join") as nobody:
        assert "PROLIFIC_PID" in nobody.text
        nobody.complaints.clear()  # the page has the status 400


def test_a_paused_study_says_so(browser: Browser, serve: Serve, link: Link) -> None:
    """While the study is paused nobody gets a task; an answer that is under way is stored."""
    study = serve("gupta-ratings")
    with visitor(browser, link(study)) as ann, visitor(browser, study.server.researcher) as boss:
        ann.begin()
        lease = ann.lease
        boss.press("Pause")
        ann.choose("appropriateness-0", 5)
        ann.send()
        assert "The study is paused" in ann.text
        boss.press("Go on")
        ann.press("Check again")
        assert ann.on_task
        assert ann.lease != lease
    assert len(study.answers_of("test_a_paused")) == 1
