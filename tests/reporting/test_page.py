"""The page in a real browser: harmless, usable without a mouse, readable on paper and phones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from browser import opened
from rejoinder.evaluator.contamination import ContaminationReport
from rejoinder.meta_evaluation.reference_curve import CurvePoint
from rejoinder.reporting.page.analysis import EvaluatorInfo
from reporting.replies import SYSTEMS, page, replies, scores

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    items = replies(30)
    mean = {"spearman": 0.3, "pearson": 0.2}
    points = [CurvePoint(n, 5, 120, mean, mean, mean) for n in (1, 2, 3)]
    evaluator = EvaluatorInfo(
        "ev", "rejoinder 0", "abc", "en", ContaminationReport(30, 2, 1), {"0.5": 0.6}
    )
    path = tmp_path_factory.mktemp("page") / "report.html"
    made = page(items, scores(items), curves={"ruber": points}, evaluator=evaluator)
    path.write_bytes(made)
    return path.as_uri()


@pytest.fixture
def shown(browser: Browser, address: str) -> Iterator[Page]:
    with opened(browser, address) as (found, complaints, asked):
        yield found
        assert complaints == []
        assert asked == [address]


def first_ids(shown: Page) -> list[str]:
    labels = shown.locator(".items .open").evaluate_all(
        "found => found.map(one => one.getAttribute('aria-label'))"
    )
    return [label.removeprefix("Details of ") for label in labels]


def test_nothing_from_data_runs_or_becomes_markup(shown: Page) -> None:
    for number in range(0, 20, 3):
        shown.locator(".open").nth(number).click()
    shown.get_by_label("Search replies").fill("<img src=x")
    expect(shown.get_by_role("status")).to_contain_text("matching")
    assert shown.evaluate("window.hacked") is None
    assert shown.locator("main img, main i, main script, h1 i").count() == 0
    assert shown.locator("h1").inner_text() == "A <i>title</i>"
    systems = shown.locator("#systems table.large tbody th").all_inner_texts()
    assert [system.strip() for system in systems] == SYSTEMS
    assert shown.locator("script").count() == 2


def test_a_script_that_is_not_the_page_s_own_is_refused(browser: Browser, address: str) -> None:
    with opened(browser, address) as (found, complaints, _):
        found.evaluate(
            "const s = document.createElement('script'); s.textContent = 'window.hacked = 1';"
            "document.body.append(s)"
        )
        assert found.evaluate("window.hacked") is None
        assert any("Content Security Policy" in text for text in complaints)


def test_the_answer_comes_first(shown: Page) -> None:
    said = "from best to worst: good, <b>bad</b>, עברית and 日本; each differs from the next"
    text = shown.locator("main").inner_text()
    assert shown.locator("main .answer").inner_text() == f"By people’s ratings, {said}."
    assert "ruber separates the same systems, in the same order." in text
    assert "3 of 30 contexts were seen (2 word for word, 1 nearly)" in text
    assert "rejoinder report 'a b' c" in text
    assert "ruber|v:1" in text
    # three of each context, though four systems answered it
    assert "90 references of 30 contexts: 30 came with the items, 60 were retrieved" in text
    assert "Seed 1, 200 resamples" in text


def test_items_are_sorted_by_real_buttons(shown: Page) -> None:
    column = shown.locator(".items thead th").filter(has_text="ruber")
    assert column.get_attribute("aria-sort") is None
    column.get_by_role("button").focus()
    shown.keyboard.press("Enter")
    assert column.get_attribute("aria-sort") == "descending"
    assert shown.evaluate("document.activeElement.dataset.sort") == "0"

    def values() -> list[float]:
        cells = shown.locator(".items td[data-name=ruber]").all_inner_texts()
        return [float(cell.replace("−", "-")) for cell in cells]

    assert values() == sorted(values(), reverse=True)
    shown.keyboard.press("Enter")
    assert column.get_attribute("aria-sort") == "ascending"
    assert values() == sorted(values())
    # what is unscored comes last, whichever way
    other = shown.locator(".items thead th").filter(has_text="bleu(n=2)")
    for direction in ("descending", "ascending"):
        other.get_by_role("button").click()
        assert other.get_attribute("aria-sort") == direction
        assert shown.locator(".items td[data-name='bleu(n=2)']").first.inner_text() != "–"


def test_items_are_searched_filtered_and_paged(shown: Page) -> None:
    status = shown.get_by_role("status")
    expect(status).to_have_text("1 to 25 of 120 items")
    before = first_ids(shown)
    shown.get_by_role("button", name="Next").click()
    expect(status).to_have_text("26 to 50 of 120 items")
    assert not set(before) & set(first_ids(shown))
    assert shown.evaluate("document.activeElement.textContent") == "Next"
    shown.get_by_label("Search replies").fill("FOUND 17")
    expect(status).to_have_text("1 to 4 of 4 matching items")
    assert first_ids(shown) == ["17:0", "17:1", "17:2", "17:3"]
    shown.get_by_label("System", exact=True).select_option("עברית")
    expect(status).to_have_text("1 to 1 of 1 matching items")
    shown.get_by_label("Search replies").fill("nothing has this")
    expect(status).to_have_text("No items match.")
    shown.get_by_label("Search replies").fill("")
    shown.get_by_label("System", exact=True).select_option("all")
    shown.get_by_label("Scored", exact=True).select_option("unscored by bleu(n=2)")
    expect(status).to_have_text("1 to 8 of 8 matching items")  # 0, 17 … 119


def test_details_show_context_references_and_reasons(shown: Page) -> None:
    button = shown.get_by_role("button", name="Details of 0:0", exact=True)
    button.focus()
    shown.keyboard.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    inside = shown.locator("tr.inside")
    assert inside.locator("ol li").all_inner_texts() == [
        "hello",
        "</script><script>window.hacked = 1</script>",
    ]
    references = inside.locator("ul li").all_inner_texts()
    assert [" ".join(text.split()) for text in references] == [
        "no weight reply to </script><script>window.hacked = 1</script>",
        "weight .50 found 0 similarity .75, retrieved",
        "weight −.25 bad smile similarity .50, retrieved",
    ]
    assert "reply" in inside.locator("mark").all_inner_texts()
    assert "unscored: </script>" in inside.locator("dl").inner_text()
    shown.keyboard.press("Enter")
    assert inside.count() == 0


def test_texts_of_any_direction_and_script(shown: Page) -> None:
    shown.get_by_role("button", name="Details of 3:0", exact=True).click()
    turn = shown.locator("tr.inside li").filter(has_text="שלום").first
    assert turn.evaluate("one => getComputedStyle(one).direction") == "rtl"
    shown.get_by_label("Search replies").fill("今日は")
    expect(shown.get_by_role("status")).to_contain_text("matching")
    turn = shown.locator(".items .to").filter(has_text="今日は").first
    assert turn.evaluate("one => getComputedStyle(one).direction") == "ltr"


def test_columns_can_be_chosen(shown: Page) -> None:
    shown.get_by_text("Columns").click()
    shown.get_by_label("bleu(n=2)", exact=True).uncheck()
    heads = shown.locator(".items thead th").all_inner_texts()
    assert [head.strip() for head in heads][:4] == ["Reply", "System", "People", "ruber"]
    assert not any("bleu" in head for head in heads)


def test_structure_for_screen_readers(shown: Page) -> None:
    levels = shown.locator("h1, h2, h3").evaluate_all(
        "found => found.map(one => Number(one.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert [shown.locator(name).count() for name in ("main", "header", "nav", "footer")] == [1] * 4
    assert shown.locator("html").get_attribute("lang") == "en"
    assert shown.locator("table").evaluate_all("all => all.filter(t => !t.caption).length") == 0
    assert shown.locator("th:not([scope])").count() == 0
    assert shown.locator("table").count() > 8
    # every picture is told in words, or hidden where a table beside it has the numbers
    assert shown.locator("svg[role=img]").count() >= 6
    untold = "all => all.filter(s => !s.closest('[aria-hidden=true]') && !s.ariaLabel).length"
    assert shown.locator("svg:not(svg svg)").evaluate_all(untold) == 0
    ids = shown.locator("[id]").evaluate_all("all => all.map(one => one.id)")
    assert len(ids) == len(set(ids))
    unnamed = "all => all.filter(b => !(b.ariaLabel || b.textContent.trim())).length"
    assert shown.locator("button").evaluate_all(unnamed) == 0
    fields = "all => all.filter(f => !f.labels.length).length"
    assert shown.locator("input, select").evaluate_all(fields) == 0
    links = shown.locator("nav a").evaluate_all("all => all.map(a => a.getAttribute('href'))")
    assert all(shown.locator(link).count() == 1 for link in links)


def test_the_keyboard_reaches_the_report_and_shows_where_it_is(shown: Page) -> None:
    shown.keyboard.press("Tab")
    assert shown.evaluate("document.activeElement.className") == "skip"
    assert shown.locator(".skip").bounding_box()["x"] >= 0  # type: ignore[index]
    shown.keyboard.press("Enter")
    assert shown.evaluate("document.activeElement.id") == "main"
    shown.keyboard.press("Tab")
    width = "getComputedStyle(document.activeElement).outlineWidth"
    assert shown.evaluate(width) == "3px"


CONTRAST = """() => {
  function rgb(text) { return text.match(/[\\d.]+/g).map(Number); }
  function light(c) {
    const [r, g, b] = c.slice(0, 3).map(v => v / 255)
      .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  }
  function behind(one) {
    for (; one; one = one.parentElement) {
      const c = rgb(getComputedStyle(one).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  }
  const low = [];
  let checked = 0;
  for (const one of document.querySelectorAll("body *")) {
    const own = [...one.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || ["SCRIPT", "STYLE", "TEMPLATE"].includes(one.tagName) || one.disabled) continue;
    const style = getComputedStyle(one);
    const ink = one.namespaceURI.endsWith("svg") ? style.fill : style.color;
    const [a, b] = [light(rgb(ink)), light(behind(one))].sort((x, y) => y - x);
    checked += 1;
    if ((a + .05) / (b + .05) < 4.5) low.push(one.outerHTML.slice(0, 80));
  }
  return [checked, low];
}"""

MARKS = """() => [...document.querySelectorAll("ul.legend .key")].map(one => {
  const c = getComputedStyle(one).fill.match(/[\\d.]+/g).map(Number);
  return c;
})"""


@pytest.mark.parametrize("dark", [False, True])
def test_contrast(browser: Browser, address: str, dark: bool) -> None:
    with opened(browser, address, dark=dark) as (shown, _, _):
        shown.locator(".open").first.click()
        shown.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        checked, low = shown.evaluate(CONTRAST)
        assert checked > 300
        assert low == []
        paper = shown.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(20, 23, 27)") == dark
        behind = luminance([20, 23, 27] if dark else [251, 250, 247])
        for mark in shown.evaluate(MARKS):
            high, low_ = sorted([luminance(mark), behind], reverse=True)
            assert (high + 0.05) / (low_ + 0.05) >= 3  # of graphics


def luminance(colour: list[float]) -> float:
    parts = [v / 255 for v in colour]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_phone_needs_no_sideways_scrolling(browser: Browser, address: str) -> None:
    with opened(browser, address, width=390) as (shown, complaints, _):
        shown.locator(".open").first.click()
        shown.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert shown.evaluate("document.documentElement.scrollWidth") == 390
        # cards instead of columns are still a table to a screen reader, and can be sorted
        assert shown.get_by_role("table", name="Replies").get_by_role("row").count() > 25
        shown.get_by_label("Sort by").select_option("ruber")
        assert shown.locator(".items [aria-sort]").get_attribute("aria-sort") == "descending"
        shown.get_by_role("button", name="Reverse order").click()
        assert shown.locator(".items [aria-sort]").get_attribute("aria-sort") == "ascending"
        assert complaints == []


def test_print_unfolds_what_is_folded(browser: Browser, address: str) -> None:
    with opened(browser, address, width=680) as (shown, _, _):
        assert shown.locator("#systems details[open]").count() == 0
        shown.evaluate("window.unfolded = -1")
        shown.evaluate(
            "window.addEventListener('beforeprint', () => {"
            "  window.unfolded = document.querySelectorAll('#systems details[open]').length })"
        )
        pdf = shown.pdf(format="A4")
        assert pdf.startswith(b"%PDF")
        assert shown.evaluate("window.unfolded") == 1
        assert shown.locator("#systems details[open]").count() == 0  # as it was
        shown.emulate_media(media="print")
        assert not shown.locator("nav").is_visible()
        assert not shown.get_by_label("Search replies").is_visible()
        assert shown.evaluate("document.documentElement.scrollWidth") <= 680


def test_without_ratings_the_page_says_why_people_are_missing(
    browser: Browser, tmp_path: Path
) -> None:
    items = replies(6, rated=False)
    path = tmp_path / "r.html"
    path.write_bytes(page(items, scores(items)))
    with opened(browser, path.as_uri()) as (shown, complaints, _):
        assert "No item has ratings" in shown.locator("#people").inner_text()
        assert shown.locator("#people svg").count() == 0
        assert shown.locator(".items th").filter(has_text="People").count() == 0
        assert complaints == []
