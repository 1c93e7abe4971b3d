"""The part of the page about few ratings: its numbers are those of estimate and plan."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from playwright.sync_api import Browser

import rejoinder
from browser import opened
from rejoinder.items import Item, Score
from rejoinder.reporting.page.few_ratings import few_ratings_section
from rejoinder.reporting.plots.scales import shown as as_shown
from reporting.replies import analysis, page, replies, scored


def some_rated(every: int = 3) -> tuple[list[Item], list[Score]]:
    """Every third context is rated, and a metric knows the ratings but for some noise."""
    rng = np.random.default_rng(1)
    rated = replies(45)
    values = [(item.rating() or 0.0) + rng.normal(0, 0.4) for item in rated]
    items = [
        item if number // 4 % every == 0 else msgspec.structs.replace(item, ratings=None)
        for number, item in enumerate(rated)
    ]
    return items, scored("m", items, values)


def test_the_part_is_there_and_fits(browser: Browser, tmp_path: Path) -> None:
    items, scores = some_rated()
    path = tmp_path / "report.html"
    path.write_bytes(page(items, scores))
    with opened(browser, path.as_uri()) as (shown, complaints, _):
        part = shown.locator("#few")
        words = part.inner_text()
        assert "with the metric, your 60 rated replies are worth" in words.lower()
        kinds = part.locator("tbody").first.locator("tr").count()
        assert kinds == 3 * 4  # both, people alone, metric alone, of four systems
        titles = [each.inner_text() for each in part.locator("h3").all()]
        assert titles == ["What more ratings would tell", "What to rate next"]
        assert shown.locator("nav a[href='#few']").count() == 1
        assert part.locator("figure svg").count() == 1
        shown.set_viewport_size({"width": 390, "height": 800})
        assert shown.evaluate("document.documentElement.scrollWidth") <= 390
        assert complaints == []


def test_numbers_are_those_of_estimate_and_plan(tmp_path: Path) -> None:
    items, scores = some_rated()
    found = analysis(items, scores)
    section = few_ratings_section(found.few, items, dict(found.data.numbers), "m")
    assert section is not None
    for name, records in (("items", items), ("scores", scores)):
        (tmp_path / f"{name}.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, records)))
    files = str(tmp_path / "items.jsonl"), str(tmp_path / "scores.jsonl")
    expected = rejoinder.estimate(*files, seed=found.settings.seed)
    means = [
        (each.system, kind, as_shown(mean))
        for each in expected.estimates.systems
        for kind, mean in (
            ("both", each.mean),
            ("people alone", each.people_only.mean),
            ("metric alone", each.metric_only.mean),
        )
    ]
    assert [(row.system, row.kind, row.value) for row in section.rows] == means
    with pytest.warns(rejoinder.RejoinderWarning, match="treated as a random sample"):
        planned = rejoinder.plan(
            *files, budget=14, seed=found.settings.seed, all_items=tmp_path / "all.jsonl"
        )
    assert [name for name, _, _ in section.next] == [item.id for item in planned.items][:10]
    assert not {name for name, _, _ in section.next} & {i.id for i in items if i.ratings}
    widths = {point.ratings: as_shown(point.width) for point in planned.curve}
    assert {int(row[0]): row[1] for row in section.curve}.items() <= widths.items()
    # the metric predicts the ratings, so people alone have wider intervals
    both, alone = (float(section.curve[-3][column]) for column in (1, 2))
    assert both < alone


def test_a_mean_of_0_is_shown() -> None:
    """People rate system s0 with -1 and 1 in turns, so that their mean is exactly 0."""
    items, scores = some_rated()
    name = items[0].system
    own = [number for number, item in enumerate(items) if item.system == name and item.ratings]
    values = dict(zip(own[: len(own) // 2 * 2], [-1.0, 1.0] * (len(own) // 2), strict=True))
    changed = [
        msgspec.structs.replace(item, ratings=values.get(number)) if item.system == name else item
        for number, item in enumerate(items)
    ]
    found = analysis(changed, scores)
    section = few_ratings_section(found.few, changed, dict(found.data.numbers), "m")
    assert section is not None
    shown = {row.kind: row.value for row in section.rows if row.system == name}
    assert set(shown) == {"both", "people alone", "metric alone"}
    assert float(shown["people alone"]) == 0


def test_no_such_part_without_ratings_or_if_all_are_rated() -> None:
    items = replies(10)
    values = [n / 40 for n in range(len(items))]
    assert b'id="few"' not in page(items, scored("rouge-l", items, values))
    items = replies(10, rated=False)
    assert b'id="few"' not in page(items, scored("rouge-l", items, values))


def test_ratings_that_say_nothing() -> None:
    items, scores = some_rated()
    equal = [
        msgspec.structs.replace(item, ratings=None if item.ratings is None else 3.0)
        for item in items
    ]
    made = page(equal, scores).decode()
    assert "Means of people can’t be estimated: all 60 ratings are 3" in made
    assert "What to rate next" in made


def test_intervals_of_single_replies_are_shown(browser: Browser, tmp_path: Path) -> None:
    items = replies(10)
    scores = [
        msgspec.structs.replace(score, interval=(2.0, 4.5) if number % 2 == 0 else None)
        for number, score in enumerate(scored("m", items, [3.0 + n % 2 for n in range(40)]))
    ]
    path = tmp_path / "report.html"
    path.write_bytes(page(items, scores))
    with opened(browser, path.as_uri()) as (shown, complaints, _):
        for name, words in (("0:0", "3.0000, people 2.00 to 4.50"), ("0:1", "4.0000")):
            button = shown.get_by_role("button", name=f"Details of {name}", exact=True)
            button.click()
            assert shown.locator("tr.inside dd").last.inner_text() == words
            button.click()
        assert complaints == []
