"""Every page for everybody: names, headings, contrast, focus, narrow windows, large text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from annotate.browser.audit import audit, check_focus
from annotate.browser.conftest import Serve, five_replies
from annotate.browser.live import LiveStudy, Visitor, visitor

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.xdist_group("browser")

Link = Callable[[LiveStudy], str]
STILL = {"reduced_motion": "reduce"}  # colours that are changing would be measured


@pytest.mark.parametrize("kind", ["ratings", "pages", "writing", "pairs", "sets", "utterances"])
def test_tasks(browser: Browser, kind: str, link: Link, request: pytest.FixtureRequest) -> None:
    """A task before and after a refused answer, and with something chosen."""
    study: LiveStudy = request.getfixturevalue(kind)
    with visitor(browser, link(study), **STILL) as ann:
        audit(ann.page)
        ann.begin()
        audit(ann.page)
        assert check_focus(ann.page) >= 4
        for mark in ann.page.locator("label.mark input").all():
            mark.check()  # sets need a rating only if replies fit
        ann.send()
        assert ann.page.locator(".errors").count()
        first = ann.page.locator("[aria-invalid=true]").first
        assert first.evaluate("each => each.contains(document.activeElement)")
        described = first.get_attribute("aria-describedby") or ""
        assert any("error-" in part for part in described.split())
        for part in described.split():
            assert ann.page.locator(f"#{part}").inner_text()
        audit(ann.page)
        for field in ann.page.locator("textarea[name^=reply]").all():
            field.fill("Written for the audit")
        for name in {e.get_attribute("name") for e in ann.page.locator("[type=radio]").all()}:
            ann.page.locator(f"input[name={name}]").first.check()
        audit(ann.page)


@pytest.mark.parametrize(
    "template", ["gupta-ratings", "gupta-references", "sugiyama-pairs", "gupta-diversity"]
)
def test_feedback(browser: Browser, serve: Serve, link: Link, template: str) -> None:
    """Consent, and the page after a practice task."""
    items = five_replies() if template == "gupta-diversity" else None
    study = serve(template, "--training", "--consent", items=items)
    with visitor(browser, link(study), **STILL) as ann:
        audit(ann.page)
        ann.press("Agree and continue")
        audit(ann.page)
        ann.page.get_by_label("I have read this").check()
        ann.press("Agree and continue")
        ann.begin()
        for number, field in enumerate(ann.page.locator("textarea[name^=reply]").all()):
            field.fill(f"{'abcd'[number] * 5} for the audit")
        for name in {e.get_attribute("name") for e in ann.page.locator("[type=radio]").all()}:
            ann.page.locator(f"input[name={name}]").first.check()
        ann.send()
        assert ann.page.locator(".feedback").count()
        audit(ann.page)
        assert check_focus(ann.page) >= 1


def test_messages(browser: Browser, ratings: LiveStudy, link: Link, serve: Serve) -> None:
    """The end of a batch, sign-up, an unknown link, a page that does not exist."""
    with visitor(browser, link(ratings), **STILL) as ann:
        ann.begin()
        ann.answer_all(lambda each: each.choose("appropriateness-0", 2), most=3)
        audit(ann.page)
        for path in ("/p/unknown", "/nothing", "/study"):
            ann.page.goto(ratings.server.address + path)
            audit(ann.page)
        ann.complaints.clear()  # the pages have the status 404 and 403
    study = serve("gupta-ratings", people__sign_up="open")
    with visitor(browser, f"{study.server.address}/join", **STILL) as ann:
        audit(ann.page)
        assert check_focus(ann.page) >= 2
        ann.page.get_by_label("Name").fill(" ")
        ann.press("Sign up")
        audit(ann.page)
        ann.page.get_by_label("Name").fill("Ann")
        ann.press("Sign up")
        audit(ann.page)


def test_not_sent(browser: Browser, ratings: LiveStudy, link: Link) -> None:
    """The message about an answer that could not be sent can be read, and its button be used."""
    with visitor(browser, link(ratings), **STILL) as ann:
        ann.begin()
        ann.page.route("**/answer", lambda route: route.abort())
        ann.choose("appropriateness-0", 4)
        ann.page.locator("form[data-send] button").click()
        ann.page.wait_for_selector("#banner button")
        audit(ann.page)
        ann.page.unroute("**/answer")
        ann.changed(ann.page.get_by_role("button", name="Try now").click)
        assert ann.on_task
        ann.complaints.clear()  # the request that was aborted


def test_long_words_and_many_turns(browser: Browser, serve: Serve, link: Link) -> None:
    """Texts without blanks are broken, and long dialogues leave the replies reachable."""
    item = {
        "id": "long",
        "context": ["w" * 400, *[f"Turn {number} of a long talk." for number in range(30)]],
        "response": "https://example.org/" + "a" * 300,
    }
    study = serve("tsuta-appropriateness", items=[item])
    with visitor(browser, link(study), **STILL) as ann:
        ann.begin()
        audit(ann.page)


def test_japanese_pages(browser: Browser, serve: Serve, link: Link) -> None:
    """Labels of scales fit in Japanese, too."""
    item = {"id": "j", "context": ["お昼はもう食べた？"], "response": "まだだよ。一緒にどう？"}
    study = serve("gupta-ratings", "-l", "ja", items=[item])
    with visitor(browser, link(study), **STILL) as ann:
        audit(ann.page)
        ann.changed(ann.page.locator("main button").click)
        audit(ann.page)


def names_of(person: Visitor) -> list[str]:
    return person.page.locator("main").aria_snapshot().splitlines()


def test_what_a_screen_reader_says(browser: Browser, ratings: LiveStudy, link: Link) -> None:
    """The tree of names has the dialogue, the reply, the question and labelled steps."""
    with visitor(browser, link(ratings)) as ann:
        ann.begin()
        tree = "\n".join(names_of(ann))
        assert 'heading "Conversation" [level=2]' in tree
        assert 'group "How appropriate is this reply to the conversation?"' in tree
        assert 'radio "5 very appropriate"' in tree
        assert 'button "Send"' in tree
