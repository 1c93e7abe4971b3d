"""Agreement with people by how well an evaluator's logs cover the contexts."""

from __future__ import annotations

import numpy as np
import pytest
from rich.console import Console

from rejoinder.items import Item, Score
from rejoinder.meta_evaluation.coverage import by_coverage
from rejoinder.meta_evaluation.evaluation import MetaSettings, evaluate_metrics
from rejoinder.meta_evaluation.join import Joined, join
from rejoinder.reporting.meta_tables import coverage_tables

COUNT = 12


def joined(count: int = COUNT, *, coverage: bool = True) -> Joined:
    """Where coverage is high the metric says what people say, where it is low the opposite; in
    between it is nonsense. A second metric knows nothing of coverage."""
    ratings = [float(i % 4) for i in range(count)]
    items = [Item(str(i), "x", ratings=r, context_id=str(i)) for i, r in enumerate(ratings)]
    values = [-r for r in ratings[:4]] + [0.0, 2.0, 2.0, 0.0] + ratings[8:]
    scores = [
        Score(
            str(i),
            "learned",
            value,
            # listed upside down: the order of the file is not that of coverage
            coverage={"nearest": i / count, "agreement": 1 - i / count} if coverage else None,
        )
        for i, value in enumerate(values[:count])
    ] + [Score(str(i), "plain", float(i)) for i in range(count)]
    return join(items, enumerate(scores, 1), items_name="i", scores_name="s")


def test_thirds_by_hand() -> None:
    found = by_coverage(joined(), resamples=100, seed=1)
    assert [(t.metric, t.by, t.third) for t in found] == [
        ("learned", kind, third)
        for kind in ("nearest", "agreement")
        for third in ("lowest", "middle", "highest")
    ]
    assert [t.correlations.n for t in found] == [4] * 6
    # over ratings 0 1 2 3: -1; 0 2 2 0 is even-handed; 1
    expected = [-1, 0, 1]
    assert [t.correlations.spearman.value for t in found[:3]] == pytest.approx(expected)
    assert [t.correlations.spearman.value for t in found[3:]] == pytest.approx(expected[::-1])
    assert (found[0].low, found[0].high) == pytest.approx((0, 3 / 12))


def test_items_without_coverage_ratings_or_score_are_left_out() -> None:
    known = joined(15)
    known.coverage["learned"]["nearest"][0] = np.nan
    known.item_scores["learned"][1] = np.nan
    known.human[2] = np.nan
    found = by_coverage(known, resamples=100, seed=1)
    assert sum(t.correlations.n for t in found if t.by == "nearest") == 12


def test_too_few_items_have_no_thirds() -> None:
    assert by_coverage(joined(8), resamples=100, seed=1) == []


def test_thirds_are_computed_at_item_level_only() -> None:
    settings = MetaSettings(resamples=100)
    found = evaluate_metrics(joined(), "item", settings)
    assert len(found.by_coverage) == 6
    assert evaluate_metrics(joined(), "context", settings).by_coverage == []
    assert evaluate_metrics(joined(coverage=False), "item", settings).by_coverage == []


def test_the_tables() -> None:
    nearest, agreement = coverage_tables(
        evaluate_metrics(joined(), "item", MetaSettings(resamples=100))
    )
    assert str(nearest.title).startswith("Agreement with people by similarity")
    console = Console(width=80, record=True)
    console.print(nearest)
    text = console.export_text()
    assert text.count("learned") == 1
    for word in ("lowest", "middle", "highest", "-1.0000", "1.0000"):
        assert word in text
    assert "agreement among" in str(agreement.title)
    assert (
        list(coverage_tables(evaluate_metrics(joined(coverage=False), "item", MetaSettings(100))))
        == []
    )
