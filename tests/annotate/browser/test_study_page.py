"""The researcher's page in a browser: what it shows of a running study, and what its buttons do."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from annotate.browser.audit import audit, check_focus
from annotate.browser.conftest import dialogues
from annotate.browser.live import LiveStudy, Visitor, init, live, visitor, write_lines
from annotate.server import Browser as PlainBrowser

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.xdist_group("browser")

GOOD = {"How lovely!": 5, "Well.": 3, "No idea.": 1}
UPSIDE_DOWN = {reply: 6 - rating for reply, rating in GOOD.items()}
REPLY = re.compile(r'<blockquote class="reply"[^>]*>.*?\? ([^<]*)</blockquote>')


def by_text(ratings: dict[str, int]) -> Callable[[str], dict[str, str]]:
    """Fill in a form by the replies on the page."""

    def fill(page: str) -> dict[str, str]:
        found = [html.unescape(text) for text in REPLY.findall(page)]
        return {f"appropriateness-{place}": str(ratings[t]) for place, t in enumerate(found)}

    return fill


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveStudy]:
    """Six contexts of three replies: Ann and Bob rate well, Cem the other way round.

    Dan was invited, but has not come yet; Eve has rated half of the replies.
    """
    folder = tmp_path_factory.mktemp("researcher")
    source = write_lines(folder / "items.jsonl", dialogues())
    init(folder / "study", "gupta-ratings", source, answers_per_task=4, tasks_per_batch=50)
    with live(folder / "study") as served:
        people = {"Ann": (GOOD, 18), "Bob": (GOOD, 18), "Cem": (UPSIDE_DOWN, 18), "Dan": (GOOD, 0)}
        people["Eve"] = (GOOD, 9)
        links = served.invite(*people)
        for link, (ratings, most) in zip(links, people.values(), strict=True):
            if most:
                person = PlainBrowser(link)
                person.post("/start")
                assert person.answer_all(by_text(ratings), most) == most
                person.close()
        yield served


def facts(page: Visitor) -> dict[str, str]:
    """The figures above, by their names."""
    found = page.page.locator(".facts > div").all()
    return {
        each.locator("dt").inner_text(): each.locator("dd").inner_text().replace("\n", " ")
        for each in found
    }


def row(page: Visitor, name: str) -> str:
    """The row of a person."""
    return page.page.locator(".people tbody tr").filter(has_text=name).inner_text()


def ranking(page: Visitor) -> list[str]:
    return page.page.locator(".ranking tbody th").all_inner_texts()


def test_it_shows_the_study(browser: Browser, study: LiveStudy) -> None:
    """Progress, agreement, ranking and people, with the numbers of ``annotate status``."""
    status = study.status()
    with visitor(browser, study.server.researcher) as page:
        shown = facts(page)
        assert shown["Answers"] == "63 of 72"  # 3 × 18 + 9 of 18 tasks × 4
        assert shown["Complete tasks"] == "9 of 18"
        assert shown["People"] == "4 of 5 answered"
        agreement = page.page.locator("section:has(#agreement-title)").inner_text()
        assert f"{status['agreement']['alpha']:.2f}".replace("-", "−") in agreement
        without = status["without_unreliable"]
        assert without["alpha"] == 1  # without Cem everybody agrees
        assert "1.00" in agreement
        assert "Would be left out: Cem." in agreement
        assert ranking(page) == ["warm", "flat", "lost"]
        # by Ann and Bob 5, by Cem 1; Eve has rated a part
        mean = next(each["mean"] for each in status["ranking"] if each["system"] == "warm")
        text = page.page.locator(".ranking tbody tr").first.inner_text()
        assert f"{mean:.2f}" in text
        assert "5.00" in text  # without those who would be left out
        assert "low kappa" in row(page, "Cem")
        assert "low kappa" not in row(page, "Ann")
        assert "reads the instructions" in row(page, "Dan")
        assert re.search(r"\b9\b", row(page, "Eve"))


def test_it_is_accessible(browser: Browser, study: LiveStudy) -> None:
    with visitor(browser, study.server.researcher, reduced_motion="reduce") as page:
        audit(page.page)
        assert check_focus(page.page) >= 8


def test_exclude_and_include(browser: Browser, study: LiveStudy) -> None:
    """Who is excluded no longer counts, and gets no task; who is taken in again does."""
    (link,) = study.invite("Flo")
    with visitor(browser, study.server.researcher) as page, visitor(browser, link) as flo:
        flo.begin()
        row_of = page.page.locator(".people tbody tr")
        cem = row_of.filter(has_text="Cem")
        page.changed(cem.get_by_role("button", name="Exclude").click)
        assert facts(page)["Answers"] == "45 of 72"
        assert "excluded" in row(page, "Cem")
        assert "Would be left out" not in page.text
        assert "1.00" in page.page.locator("section:has(#agreement-title)").inner_text()
        assert study.status()["answers"] == 45
        # an answer that is under way is not taken from somebody who is excluded meanwhile
        flo_row = row_of.filter(has_text="Flo")
        page.changed(flo_row.get_by_role("button", name="Exclude").click)
        flo.choose("appropriateness-0", 3)
        flo.send()
        assert "You no longer take part" in flo.text
        for who in (cem, flo_row):
            page.changed(who.get_by_role("button", name="Include again").click)
        assert facts(page)["Answers"] == "63 of 72"
        flo.page.goto(link)
        assert flo.on_task
        flo.complaints.clear()  # the status 403


def test_pause(browser: Browser, study: LiveStudy) -> None:
    with visitor(browser, study.server.researcher) as page:
        assert page.page.locator(".state").inner_text() == "running"
        page.press("Pause")
        assert page.page.locator(".state").inner_text() == "paused"
        assert study.status()["paused"] is True
        page.press("Go on")
        assert study.status()["paused"] is False


def test_it_follows_the_study(browser: Browser, study: LiveStudy) -> None:
    """The page shows new answers by itself."""
    (link,) = study.invite("Gus")
    with visitor(browser, study.server.researcher) as page:
        page.page.clock.install()
        page.page.reload()
        before = int(facts(page)["Answers"].split()[0])
        person = PlainBrowser(link)
        person.post("/start")
        person.answer_all(by_text(GOOD), 1)
        person.close()
        for _ in range(50):  # the server computes the status at most every 2 seconds
            page.page.clock.run_for(10_000)
            page.page.wait_for_load_state("networkidle")
            if facts(page)["Answers"].startswith(f"{before + 1} of"):
                break
            time.sleep(0.1)
        assert facts(page)["Answers"].startswith(f"{before + 1} of")
        assert "Gus" in page.text


def test_on_a_phone(browser: Browser, study: LiveStudy) -> None:
    """Every person's figures have their names, as the head of the table is out of sight."""
    size = {"width": 390, "height": 844}
    with visitor(browser, study.server.researcher, viewport=size, has_touch=True) as page:
        assert page.page.evaluate("document.documentElement.scrollWidth") <= 390
        ranking = page.page.locator(".wide:has(.ranking)")
        ranking.locator("tbody th").first.evaluate(
            "each => { each.textContent = 'name'.repeat(9) }"
        )
        assert ranking.locator("thead th").count() == 3  # also without whom would be left out
        assert ranking.evaluate("each => each.scrollWidth <= each.clientWidth")
        ann = page.page.locator(".people tbody tr").filter(has_text="Ann")
        names = ann.evaluate(
            "row => [...row.cells].map((each) => getComputedStyle(each, '::before').content)"
        )
        assert any("Kappa" in each for each in names)
        assert ann.get_by_role("button", name="Exclude").is_visible()


def test_nobody_else_opens_it(browser: Browser, study: LiveStudy) -> None:
    (link,) = study.invite("Hal")
    with visitor(browser, link) as person:
        person.page.goto(f"{study.server.address}/study")
        assert "This is the researcher's page" in person.text
        assert "Ann" not in person.page.content()
        person.complaints.clear()  # the status 403
