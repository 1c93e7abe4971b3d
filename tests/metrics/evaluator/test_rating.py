"""``rating``: how the rater rates the reply itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from scoring import score

from evaluators import make_evaluator, open_small, rater_of
from rejoinder.evaluator.rating import NO_RATER
from rejoinder.items import Item, Reference
from rejoinder.metrics.batch import Batch
from rejoinder.metrics.batch_scores import BatchScores
from rejoinder.metrics.evaluator.rating import NO_GOOD_REFERENCE
from rejoinder.metrics.metric import ItemMetric, make_metric
from rejoinder.metrics.scoring_context import ScoringContext

CHEESE = ["do you like cheese"]
ITEMS = [
    Item("1", "yes i do", context=CHEESE, references=[Reference("yes i do")]),
    Item("2", "no", context=CHEESE, references=[Reference("yes"), Reference("no")]),
    Item("3", " ", context=CHEESE, references=[Reference("no")]),
    Item("4", "no", context=CHEESE, references=[Reference("no", source="retrieved")]),
    Item("5", "no", references=[Reference("no")]),
    Item("6", "no", context=CHEESE),
]


def test_ratings_by_hand(tmp_path: Path) -> None:
    """2 · (1 + words shared) / (2 + words) - 1, see CountingRater; a mean over references."""
    evaluator = open_small(make_evaluator(tmp_path / "small"))
    found = score(ITEMS, "rating", evaluator)
    # 1: 2 · 4/5 - 1 = .6; 2: (2 · 1/3 - 1 + 2 · 2/3 - 1) / 2 = 0
    assert found.values[:3] == pytest.approx([0.6, 0.0, -1.0])
    assert found.unscored == {"4": NO_GOOD_REFERENCE, "5": "no context", "6": NO_GOOD_REFERENCE}
    assert evaluator.rater is not None
    assert all(turns == [] for _, _, turns, _ in rater_of(evaluator).inputs_seen)


def test_an_evaluator_without_rater_scores_nothing(tmp_path: Path) -> None:
    evaluator = open_small(make_evaluator(tmp_path / "small", rater=False))
    found = score(ITEMS, "rating", evaluator)
    assert set(found.unscored.values()) == {NO_RATER}


def test_metrics_share_one_expansion(tmp_path: Path) -> None:
    evaluator = open_small(make_evaluator(tmp_path / "small"))
    scoring = ScoringContext(Batch.of(ITEMS))

    def scored(name: str) -> BatchScores:
        metric = make_metric(name, evaluator=evaluator)
        assert isinstance(metric, ItemMetric)
        return scoring.score(metric)

    rating, unreferenced = scored("rating"), scored("unreferenced")
    assert rating.expansion is not None
    assert rating.expansion is unreferenced.expansion, "looked up once"
