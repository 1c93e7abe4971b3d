"""The part of the page about judges, in a real browser, and its first sentence."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from playwright.sync_api import Browser

from browser import opened
from rejoinder.items import Item, Score
from rejoinder.reporting.page.judges import judge_section
from reporting.replies import analysis, page, replies, scored

JUDGE = "judge(model=qwen3)"


def rated_by_three(*, agree: bool) -> tuple[list[Item], list[Score]]:
    """Return replies with three annotators, who agree with each other and the judge, or rate at
    random, while the judge keeps to the middle."""
    rng = np.random.default_rng(2)
    items, scores = [], []
    for number, item in enumerate(replies(30, rated=False)):
        opinion = number % 5 + 1
        given = [min(5, max(1, opinion + d)) for d in (0, 1, -1)]
        if not agree:
            opinion, given = 3, rng.integers(1, 6, 3).tolist()
        ratings = {f"ann{n}": float(each) for n, each in enumerate(given)}
        items.append(msgspec.structs.replace(item, ratings=ratings))
        cost = {"answers": 1.0, "spread": 0.0, "requests": 1.0, "tokens": 250.0, "seconds": 0.5}
        signature = f"{JUDGE}|scale:1-5"
        scores.append(Score(item.id, JUDGE, float(opinion), signature, judging=cost))
    return items, scores


def test_the_part_about_judges_is_there_and_fits(browser: Browser, tmp_path: Path) -> None:
    items, scores = rated_by_three(agree=True)
    words = scored("rouge-l", items, [n % 9 / 9 for n in range(len(items))])
    path = tmp_path / "report.html"
    path.write_bytes(page(items, [*scores, *words]))
    with opened(browser, path.as_uri()) as (shown, complaints, _):
        part = shown.locator("#judges")
        assert "the judge may stand in for an annotator" in part.inner_text()
        titles = [each.inner_text() for each in part.locator("h3").all()]
        assert titles == ["May it stand in for an annotator?", "Biases", "Cost"]
        assert part.locator("code").first.inner_text() == JUDGE
        assert shown.locator("nav a[href='#judges']").count() == 1
        shown.set_viewport_size({"width": 390, "height": 800})
        width = shown.evaluate("document.documentElement.scrollWidth")
        assert width <= 390
        assert complaints == []


def test_a_page_without_a_judge_has_no_such_part() -> None:
    items = replies(10)
    made = page(items, scored("rouge-l", items, [n / 40 for n in range(len(items))]))
    assert b'id="judges"' not in made


@pytest.mark.parametrize(
    ("agree", "sentence"),
    [
        (True, "By the alternative-annotator test, the judge may stand in for an annotator."),
        (False, "The annotators hardly agree: by the alternative-annotator test, a judge who"),
    ],
)
def test_the_first_sentence_says_what_the_test_is_worth(agree: bool, sentence: str) -> None:
    items, scores = rated_by_three(agree=agree)
    section = judge_section(analysis(items, scores).judges)
    assert section is not None
    assert section.answer.startswith(sentence)
