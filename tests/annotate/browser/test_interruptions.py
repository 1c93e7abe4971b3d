"""What people entered is not lost: refused answers, reloads, a server that is down."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from annotate.browser.conftest import dialogues
from annotate.browser.live import LiveStudy, Visitor, init, live, visitor, write_lines

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

pytestmark = pytest.mark.xdist_group("browser")

Link = Callable[[LiveStudy], str]
FAILED = "Failed to load resource"
"""Beginning of what the browser's console says of a server that is down."""


def values(person: Visitor) -> list[str]:
    return [each.input_value() for each in person.page.locator("textarea[name^=reply]").all()]


def test_refused_replies_are_explained_and_stay(
    browser: Browser, writing: LiveStudy, link: Link
) -> None:
    """Each reason stands at its reply, the first wrong field has the focus, the text stays."""
    with visitor(browser, link(writing)) as ann:
        ann.begin()
        context = ann.page.locator(".turn p").last.inner_text()
        ann.write(0, context.lower())
        ann.write(1, "x" * 61)
        ann.send()
        assert values(ann) == [context.lower(), "x" * 61]
        reasons = ann.page.locator(".slot .error").all_inner_texts()
        assert "repeats the conversation" in reasons[0]
        assert "61 characters; at most 60" in reasons[1]
        assert ann.page.evaluate("document.activeElement.name") == "reply-0"
        summary = ann.page.locator(".errors a").all()
        assert len(summary) == 2
        summary[1].click()
        assert ann.page.evaluate("document.activeElement.name") == "reply-1"
        # the same reply twice, and one that is known already
        ann.write(0, "I would rather talk about the weather.")
        ann.write(1, "I would rather talk about the weather!")
        ann.send()
        (reason,) = ann.page.locator(".slot .error").all_inner_texts()
        assert "almost the same as reply 1" in reason
        known = context.removeprefix("What about ").removeprefix("I was thinking of ").rstrip("?.")
        ann.write(1, f"Tell me more about {known}!")
        ann.send()
        (reason,) = ann.page.locator(".slot .error").all_inner_texts()
        assert "already known" in reason
        ann.write(1, "Something else entirely, please.")
        lease = ann.lease
        ann.send()
        assert ann.lease != lease
        assert values(ann) == ["", ""]
    (row,) = writing.answers_of("test_refused_replies")
    assert row["answer"]["replies"][0] == "I would rather talk about the weather."
    (person,) = (
        each for each in writing.status()["people"] if each["name"].startswith("test_refused")
    )
    assert person["refused"] == {
        "repeats_context": 1, "too_long": 1, "repeats_slot": 1, "repeats_reference": 1,
    }  # fmt: skip


def test_drafts_survive_a_reload(browser: Browser, writing: LiveStudy, link: Link) -> None:
    """What was typed, and a comment, is there again; after sending it is gone."""
    with visitor(browser, link(writing)) as ann:
        ann.begin()
        lease = ann.lease
        ann.write(0, "Half a sent")
        ann.page.locator("details.comment summary").click()
        ann.page.get_by_label("Comment").fill("A hard one")
        ann.page.reload()
        assert ann.lease == lease
        assert values(ann) == ["Half a sent", ""]
        assert ann.page.get_by_label("Comment").input_value() == "A hard one"
        assert "restored" in ann.page.locator("#banner").inner_text()
        ann.write(0, "Half a sentence is now whole.")
        ann.write(1, "And here comes another.")
        ann.send()
        assert not ann.page.locator("#banner p").count()
        assert values(ann) == ["", ""]
        kept = ann.page.evaluate("Object.keys(localStorage).length")
        assert kept == 0
    (row,) = writing.answers_of("test_drafts_survive")
    assert row["comment"] == "A hard one"


def test_chosen_ratings_survive_a_reload(browser: Browser, pages: LiveStudy, link: Link) -> None:
    with visitor(browser, link(pages)) as ann:
        ann.begin()
        ann.choose("appropriateness-0", 4)
        ann.choose("appropriateness-2", 1)
        ann.page.reload()
        checked = ann.page.locator("input:checked").all()
        found = {each.get_attribute("name"): each.get_attribute("value") for each in checked}
        assert found == {"appropriateness-0": "4", "appropriateness-2": "1"}


def test_drafts_do_not_reach_somebody_else(
    browser: Browser, writing: LiveStudy, link: Link
) -> None:
    """Another person's link in the same browser shows none of the first person's text."""
    with visitor(browser, link(writing)) as ann:
        ann.begin()
        ann.write(0, "My secret thoughts")
        ann.page.goto(link(writing))
        ann.begin()
        assert values(ann) == ["", ""]


def test_coming_back_shows_the_same_task(browser: Browser, pages: LiveStudy, link: Link) -> None:
    """On another device the link shows the same task, with the replies in the same order."""
    address = link(pages)
    with visitor(browser, address) as ann:
        ann.begin()
        lease, text = ann.lease, ann.text
    with visitor(browser, address) as ann:
        assert ann.lease == lease
        assert ann.text == text
        assert len(set(ann.page.locator(".reply").all_inner_texts())) == 3


def test_a_lost_acknowledgement_is_no_second_answer(
    browser: Browser, ratings: LiveStudy, link: Link
) -> None:
    """The server stores the answer, but its response is lost: the answer is sent again."""
    sent = []

    def lose(route: Route) -> None:
        sent.append(route.request.post_data)
        if len(sent) == 1:
            route.fetch()
            route.abort()
        else:
            route.continue_()

    with visitor(browser, link(ratings)) as ann:
        ann.begin()
        ann.page.route("**/answer", lose)
        ann.choose("appropriateness-0", 2)
        ann.send()
        assert len(sent) == 2
        assert ann.on_task
        ann.complaints = [text for text in ann.complaints if FAILED not in text]
    (row,) = ratings.answers_of("test_a_lost_acknowledgement")
    assert row["answer"] == {"ratings": [{"appropriateness": 2}]}


def make_rating_study(folder: Path) -> Path:
    source = write_lines(folder / "items.jsonl", dialogues(2))
    return init(folder / "study", "gupta-ratings", source, answers_per_task=1)


@pytest.mark.parametrize("closed", [False, True], ids=["page stays open", "page is closed"])
def test_an_answer_waits_for_the_server(browser: Browser, tmp_path: Path, closed: bool) -> None:
    """The server is killed before an answer is sent; the browser sends it once it is back."""
    study = make_rating_study(tmp_path)
    with live(study) as served:
        (address,) = served.invite("Ann")
        port = str(urlsplit(served.server.address).port)
        with visitor(browser, address) as ann:
            ann.begin()
            lease = ann.lease
            served.server.process.kill()
            served.server.process.wait()
            ann.choose("appropriateness-0", 4)
            ann.page.locator("form[data-send] button[type=submit]").click()
            ann.page.wait_for_selector("#banner button")
            assert "kept in this browser" in ann.page.locator("#banner").inner_text()
            assert ann.page.locator("input:checked").get_attribute("value") == "4"
            ann.main.evaluate("main => { main.dataset.before = '1'; }")
            if closed:
                ann.page.close()
            with live(study, "--port", port) as again:
                if closed:
                    ann.page = ann.context.new_page()
                    ann.page.set_default_timeout(20_000)
                    ann.page.goto(again.server.address)
                ann.page.wait_for_selector(
                    f"main:not([data-before]) input[name=lease]:not([value='{lease}'])",
                    state="attached",
                    timeout=20_000,
                )
                assert not ann.page.locator("#banner p").count()
                assert ann.page.evaluate("Object.keys(localStorage).length") == 0
                (row,) = again.answers_of("Ann")
                assert row["answer"] == {"ratings": [{"appropriateness": 4}]}
                ann.choose("appropriateness-0", 5)
                ann.send()
                assert len(again.answers_of("Ann")) == 2
            ann.complaints = [text for text in ann.complaints if FAILED not in text]


def test_a_lost_session_is_found_again(browser: Browser, ratings: LiveStudy, link: Link) -> None:
    """Without its cookie the browser keeps the answer until the person opens the link again."""
    address = link(ratings)
    with visitor(browser, address) as ann:
        ann.begin()
        lease = ann.lease
        ann.context.clear_cookies()
        ann.choose("appropriateness-0", 1)
        ann.page.locator("form[data-send] button[type=submit]").click()
        ann.page.wait_for_selector("#banner p")
        assert "open your personal link again" in ann.page.locator("#banner").inner_text()
        ann.page.goto(address)
        other = f"input[name=lease]:not([value='{lease}'])"
        ann.page.wait_for_selector(other, state="attached")
        ann.complaints.clear()  # the status 403
    (row,) = ratings.answers_of("test_a_lost_session")
    assert row["answer"] == {"ratings": [{"appropriateness": 1}]}


def test_two_tabs_are_one_person(browser: Browser, ratings: LiveStudy, link: Link) -> None:
    """The same task in two tabs is answered once; the second tab goes on to another task."""
    with visitor(browser, link(ratings)) as ann:
        ann.begin()
        first = ann.page
        ann.page = ann.context.new_page()
        ann.page.goto(first.url)
        lease = ann.lease
        ann.choose("appropriateness-0", 5)
        ann.send()
        after = ann.lease
        ann.page = first
        assert ann.lease == lease
        ann.choose("appropriateness-0", 2)
        ann.send()
        assert ann.lease == after
    (row,) = ratings.answers_of("test_two_tabs")
    assert row["answer"] == {"ratings": [{"appropriateness": 5}]}


def test_impatient_clicks_are_one_answer(browser: Browser, ratings: LiveStudy, link: Link) -> None:
    """The button can be pressed again and again while the server takes its time."""
    with visitor(browser, link(ratings)) as ann:
        ann.begin()
        sent = []

        def slow(route: Route) -> None:
            sent.append(route.request.post_data)
            ann.page.wait_for_timeout(300)
            route.continue_()

        ann.page.route("**/answer", slow)
        ann.choose("appropriateness-0", 3)

        def click_often() -> None:
            button = ann.page.locator("form[data-send] button[type=submit]")
            button.evaluate("button => { button.click(); button.click(); button.click(); }")

        ann.changed(click_often)
        assert len(sent) == 1
    assert len(ratings.answers_of("test_impatient_clicks")) == 1


def test_a_browser_that_keeps_nothing(browser: Browser, writing: LiveStudy, link: Link) -> None:
    """Where the browser may not store anything, people can still answer, and are warned before
    they leave with something unsent."""
    with visitor(browser, link(writing)) as ann:
        ann.context.add_init_script(
            "Storage.prototype.setItem = () => { throw new DOMException('full'); };"
        )
        ann.begin()
        ann.write(0, "Nothing is kept here.")
        warned = []
        ann.page.once("dialog", lambda dialog: (warned.append(dialog.type), dialog.accept()))
        ann.page.reload()
        assert warned == ["beforeunload"]
        assert values(ann) == ["", ""]
        ann.write(0, "Nothing was kept here.")
        ann.write(1, "So I write it once more.")
        ann.send()
        assert values(ann) == ["", ""]
    (row,) = writing.answers_of("test_a_browser_that_keeps_nothing")
    assert row["answer"]["replies"][1] == "So I write it once more."
