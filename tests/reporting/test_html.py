"""HTML tables for notebooks."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from rejoinder.items import Item, Score
from rejoinder.meta_evaluation.evaluation import MetaSettings, evaluate_metrics
from rejoinder.meta_evaluation.join import join
from rejoinder.meta_evaluation.ranking import RankingOptions, rank_values
from rejoinder.reporting.html import (
    MAX_ROWS,
    correlations_html,
    ranking_html,
    table_html,
)
from rejoinder.reporting.plots import correlations_svg, ranking_svg
from rejoinder.reporting.tables import ranking_notes, ranking_table


def cells(html: str) -> list[list[str]]:
    """The texts of the rows, from well-formed HTML."""
    root = ElementTree.fromstring(f"<div>{html}</div>")
    return [["".join(cell.itertext()) for cell in row] for row in root.iter("tr")]


def replies() -> tuple[list[Item], list[Score]]:
    rng = np.random.default_rng(1)
    items = [
        Item(f"{c}:{s}", "x", system=s, context_id=str(c), ratings=float(rng.integers(1, 6)))
        for c in range(12)
        for s in ("a", "<b>", "c")
    ]
    return items, [Score(item.id, "<m>", float(rng.normal())) for item in items]


def test_text_is_escaped_and_rows_are_limited() -> None:
    html = table_html(["<a>", "n"], [["<script>", 1]] * (MAX_ROWS + 3), caption="&", right=[1])
    assert "<script>" not in html
    assert cells(html)[:2] == [["<a>", "n"], ["<script>", "1"]]
    assert len(cells(html)) == 1 + MAX_ROWS
    assert "3 more rows are not shown." in html


def test_rankings_as_table_and_plot() -> None:
    items, scores = replies()
    values = np.array([score.value for score in scores], float)
    ranking = rank_values(items, values, by="<m>", options=RankingOptions(100))
    rows = cells(ranking_html(ranking))
    assert rows[0] == ["group", "system", "value", "95 % interval"]
    assert {row[1] for row in rows[1:]} == {"a", "<b>", "c"}
    root = ElementTree.fromstring(ranking_svg(ranking))
    assert {"a", "<b>", "c", "Systems by <m>"} <= {element.text for element in root.iter()}


def test_correlations_as_table_and_plot() -> None:
    items, scores = replies()
    joined = join(items, enumerate(scores, 1), items_name="items", scores_name="scores")
    found = evaluate_metrics(joined, "item", MetaSettings(100))
    assert cells(correlations_html(found))[1][0] == "<m>"
    root = ElementTree.fromstring(correlations_svg(found))
    assert "<m>" in {element.text for element in root.iter()}


def test_notes_say_that_only_neighbours_were_tested() -> None:
    items = [
        Item(f"{c}:{s}", "x", system=f"s{s}", context_id=str(c))
        for c in range(3)
        for s in range(301)
    ]
    values = np.arange(len(items), dtype=float)
    ranking = rank_values(items, values, options=RankingOptions(50))
    (tested,) = ranking_notes(ranking)
    assert "only neighbours in the ranking were tested" in tested
    table = ranking_table("m", ranking)
    assert [column.header for column in table.columns] == ["system", "value", "95 % CI"]
    assert table.caption == "… 201 more systems: to_dict()"
    assert "<p>With 301 systems only neighbours" in ranking_html(ranking)
