"""Ways to take part: keyboard alone, a phone, no JavaScript, Japanese and Chinese."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import rejoinder.annotate.web.translations as translations
from annotate.browser.conftest import Serve
from annotate.browser.live import LiveStudy, Visitor, visitor

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.xdist_group("browser")

Link = Callable[[LiveStudy], str]
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "has_touch": True,
    "is_mobile": True,
    "device_scale_factor": 2,
}


def start_by_keyboard(person: Visitor) -> None:
    """Go to the button of the instructions with the tabulator key, and press it."""
    keyboard = person.page.keyboard
    for _ in range(10):
        keyboard.press("Tab")
        if person.page.evaluate("document.activeElement.matches('main button')"):
            person.changed(lambda: keyboard.press("Enter"))
            return
    pytest.fail("the button cannot be reached")


# keyboard alone


def test_ratings_by_keyboard(browser: Browser, ratings: LiveStudy, link: Link) -> None:
    """A digit chooses, Enter sends; at the end of the batch, Enter goes on."""
    with visitor(browser, link(ratings)) as ann:
        keyboard = ann.page.keyboard
        start_by_keyboard(ann)
        for digit in "413":
            keyboard.press(digit)
            assert ann.page.locator("input:checked").get_attribute("value") == digit
            ann.changed(lambda: keyboard.press("Enter"))
        assert "DONE-42" in ann.text
    found = ratings.answers_of("test_ratings_by_keyboard")
    assert [row["answer"]["ratings"] for row in found] == [
        [{"appropriateness": value}] for value in (4, 1, 3)
    ]


def test_a_page_of_replies_by_keyboard(browser: Browser, pages: LiveStudy, link: Link) -> None:
    """Digits rate one reply after the other; a digit on a focused scale changes that one."""
    with visitor(browser, link(pages)) as ann:
        keyboard = ann.page.keyboard
        start_by_keyboard(ann)
        for digit in "523":
            keyboard.press(digit)
        checked = ann.page.locator("input:checked")
        assert [each.get_attribute("value") for each in checked.all()] == ["5", "2", "3"]
        ann.page.locator("input[name=appropriateness-1]").first.focus()
        keyboard.press("4")
        ann.changed(lambda: keyboard.press("Control+Enter"))
    (row,) = pages.answers_of("test_a_page_of_replies_by_keyboard")
    given = [rating["appropriateness"] for rating in row["answer"]["ratings"]]
    assert [given[place] for place in row["view"]["order"]] == [5, 4, 3]


def test_pairs_by_keyboard(browser: Browser, pairs: LiveStudy, link: Link) -> None:
    """a and b choose a side, t a tie, whatever reply is on which side."""
    with visitor(browser, link(pairs)) as ann:
        keyboard = ann.page.keyboard
        start_by_keyboard(ann)
        for key in ("a", "b", "t", "ArrowRight"):
            keyboard.press(key)
            ann.changed(lambda: keyboard.press("Enter"))
    sides = []
    for row in pairs.answers_of("test_pairs_by_keyboard"):
        winner, left = row["answer"]["winner"], row["view"]["left"]
        sides.append("tie" if winner == "tie" else "left" if winner == left else "right")
    assert sides == ["left", "right", "tie", "right"]


def test_sets_by_keyboard(browser: Browser, sets: LiveStudy, link: Link) -> None:
    """Letters mark replies, a second time take the mark away; digits rate."""
    with visitor(browser, link(sets)) as ann:
        keyboard = ann.page.keyboard
        start_by_keyboard(ann)
        for key in ("a", "c", "e", "a"):
            keyboard.press(key)
        keyboard.press("2")
        ann.changed(lambda: keyboard.press("Enter"))
    (row,) = sets.answers_of("test_sets_by_keyboard")
    assert [row["answer"]["fits"][place] for place in row["view"]["order"]] == [
        False, False, True, False, True,
    ]  # fmt: skip
    assert row["answer"]["rating"] == 2


def test_writing_by_keyboard(browser: Browser, writing: LiveStudy, link: Link) -> None:
    """Letters and digits are text in a field; Ctrl and Enter send."""
    with visitor(browser, link(writing)) as ann:
        keyboard = ann.page.keyboard
        start_by_keyboard(ann)
        ann.page.locator("textarea").first.focus()
        keyboard.type("a1b2 and 3 more")
        keyboard.press("Tab")
        keyboard.type("t for tea, b for bread")
        ann.changed(lambda: keyboard.press("Control+Enter"))
    (row,) = writing.answers_of("test_writing_by_keyboard")
    assert row["answer"]["replies"] == ["a1b2 and 3 more", "t for tea, b for bread"]
    assert "pasted" not in row["flags"]


def test_pasted_text_is_noted(browser: Browser, writing: LiveStudy, link: Link) -> None:
    with visitor(browser, link(writing), permissions=["clipboard-read", "clipboard-write"]) as ann:
        ann.begin()
        ann.write(0, "Something typed in full")
        ann.page.evaluate("navigator.clipboard.writeText('Text from a language model')")
        ann.page.locator("textarea[name=reply-1]").focus()
        ann.page.keyboard.press("Control+v")
        ann.send()
    (row,) = writing.answers_of("test_pasted_text_is_noted")
    assert row["answer"]["replies"][1] == "Text from a language model"
    assert "pasted" in row["flags"]


# a phone


@pytest.mark.parametrize("kind", ["ratings", "pages", "writing", "pairs", "sets", "utterances"])
def test_on_a_phone(
    browser: Browser, kind: str, link: Link, request: pytest.FixtureRequest
) -> None:
    """Everything can be tapped, nothing is cut off, and there is no talk of a keyboard."""
    study: LiveStudy = request.getfixturevalue(kind)
    with visitor(browser, link(study), **PHONE) as ann:
        page = ann.page
        ann.changed(page.locator("main button").tap)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        for hint in page.locator(".hint, .task kbd").all():
            assert not hint.is_visible()
        for label in page.locator("form label.step, label.side, label.mark, button").all():
            box = label.bounding_box()
            assert box is not None
            assert box["height"] >= 44
            assert box["width"] >= 40
        for name in {
            each.get_attribute("name") for each in page.locator("input[type=radio]").all()
        }:
            page.locator(f"label:has(input[name={name}])").nth(1).tap()
        for mark in page.locator("label.mark").all()[:2]:
            mark.tap()
        for number, field in enumerate(page.locator("textarea[name^=reply]").all()):
            field.tap()
            page.keyboard.type(f"On a phone, {kind} {number} times")
        before = ann.lease
        ann.changed(page.locator("form[data-send] button[type=submit]").tap)
        assert not page.locator(".errors").count(), ann.text
        assert ann.lease != before
    assert len(study.answers_of("test_on_a_phone")) >= 1


# without JavaScript


def send_plainly(person: Visitor) -> None:
    with person.page.expect_navigation():
        person.page.locator("main button[type=submit]").click()


@pytest.mark.parametrize("kind", ["ratings", "pages", "pairs", "sets", "utterances", "writing"])
def test_without_javascript(
    browser: Browser, kind: str, link: Link, request: pytest.FixtureRequest
) -> None:
    """Every kind works; what is missing is said, and what was entered stays."""
    study: LiveStudy = request.getfixturevalue(kind)
    with visitor(browser, link(study), java_script_enabled=False) as ann:
        page = ann.page
        send_plainly(ann)
        lease = ann.lease
        names = list(
            dict.fromkeys(e.get_attribute("name") for e in page.locator("input[type=radio]").all())
        )
        for mark in page.locator("input[type=checkbox]").all():
            mark.check()
        fields = page.locator("textarea[name^=reply]").all()
        for number, field in enumerate(fields[:-1]):
            field.fill(f"Written plainly for {kind}, {number}")
        for name in names[:-1]:
            page.locator(f"input[name={name}]").last.check()
        send_plainly(ann)  # the last one is missing
        assert page.locator(".errors li").count() == 1
        assert ann.lease == lease
        assert page.locator("input[type=radio]:checked").count() == len(names[:-1])
        assert page.locator("input[type=checkbox]:checked").count() == len(
            page.locator("input[type=checkbox]").all()
        )
        for number, field in enumerate(page.locator("textarea[name^=reply]").all()[:-1]):
            assert field.input_value() == f"Written plainly for {kind}, {number}"
        if fields:
            page.locator("textarea[name^=reply]").last.fill(f"The last one for {kind}")
        for name in names[-1:]:
            page.locator(f"input[name={name}]").nth(1).check()
        send_plainly(ann)
        assert not page.locator(".errors").count()
        assert ann.lease not in (None, lease)
    rows = study.answers_of("test_without_javascript")
    assert len(rows) == 1


# other languages


def words(language: str) -> Any:
    folder = translations.FOLDER
    return tomllib.loads((folder / f"{language}.toml").read_text("utf-8"))


JAPANESE = [{"id": "j0", "context": ["昨日、駅前の新しいパン屋に行ってみたよ。"]}]


def test_in_japanese(browser: Browser, serve: Serve, link: Link) -> None:
    """Pages, consent, instructions and training in Japanese; words are masked, lengths counted."""
    masks = {f"write.masks.{n}.people": 1 for n in range(3)}
    study = serve(
        "sugiyama-references", "-l", "ja", "--consent", "--training",
        items=JAPANESE, **masks, answers_per_task=3,
    )  # fmt: skip
    ja = words("ja")
    masked = 0
    for _ in range(3):
        with visitor(browser, link(study), locale="ja-JP") as person:
            page = person.page
            assert page.locator("html").get_attribute("lang") == "ja"
            assert page.locator("h1").inner_text() == ja["consent"]["title"]
            page.get_by_label(ja["consent"]["agree"]).check()
            person.press(ja["consent"]["send"])
            assert page.locator("h1").inner_text() == ja["instructions"]["title"]
            person.press(ja["instructions"]["send"])
            for number in range(3):  # the training round
                person.write(0, f"ねこ{number}")
                person.send()
                assert page.locator("textarea[name=reply-0]").input_value() == f"ねこ{number}"
                message = ja["refusals"]["empty"]
                assert message in page.locator(".errors").inner_text()
                for place in range(7):
                    person.write(place, "あいうえおかき"[place] * (9 if place == 6 else 12))
                person.send()
                person.press(ja["feedback"]["go_on"])
            masked += "***" in page.locator(".turn p").inner_text()
            note = ja["write"]["masked"] in person.text
            assert note == ("***" in page.locator(".turn p").inner_text())
            person.write(6, "とてもとてもとても")  # 9 characters
            assert page.locator("#field-reply-6-count").inner_text() == "9"
            person.write(6, "とてもとてもとても!")
            assert page.locator(".counter.wrong").count() == 1
    assert masked == 2  # of three people, one sees the sentence as it is


def test_in_chinese(browser: Browser, serve: Serve, link: Link) -> None:
    """The interface is Chinese; a missing answer is named in Chinese."""
    item = {"id": "z0", "context": ["你周末去哪儿了？"], "response": "去爬山了，风景很好。"}
    study = serve("ruber-satisfaction", "-l", "zh", items=[item])
    zh = words("zh")
    with visitor(browser, link(study), locale="zh-CN") as person:
        assert person.page.locator("html").get_attribute("lang") == "zh"
        person.press(zh["instructions"]["send"])
        person.send()
        assert zh["refusals"]["choose_one"] in person.page.locator(".errors").inner_text()
        person.choose("satisfaction-0", 2)
        person.send()
        assert person.page.locator("h1").inner_text() == zh["done"]["title"]
