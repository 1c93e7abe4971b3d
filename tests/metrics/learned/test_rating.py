"""``rating``: the rater's word on the reply itself."""

from __future__ import annotations

from pathlib import Path

import pytest

import rejoinder
from evaluators import make_evaluator, open_small
from rejoinder.evaluator.rating import NO_RATER
from rejoinder.items import Item, Reference
from rejoinder.metrics.base import ItemMetric, make_metric
from rejoinder.metrics.batch import Batch
from rejoinder.metrics.learned.rating import NONE_GOOD
from rejoinder.metrics.sitting import Scored, Sitting
from rejoinder.spec import Spec

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
    found = rejoinder.score(ITEMS, "rating", evaluator=evaluator.path)["rating"]
    # 1: 2 · 4/5 - 1 = .6; 2: (2 · 1/3 - 1 + 2 · 2/3 - 1) / 2 = 0
    assert found.values[:3] == pytest.approx([0.6, 0.0, -1.0])
    assert found.unscored == {"4": NONE_GOOD, "5": "no context", "6": NONE_GOOD}
    assert evaluator.rater is not None
    assert all(turns == [] for _, _, turns, _ in evaluator.rater.asked)  # type: ignore[attr-defined]


def test_an_evaluator_without_rater_can_not_be_asked(tmp_path: Path) -> None:
    evaluator = open_small(make_evaluator(tmp_path / "small", rater=False))
    found = rejoinder.score(ITEMS, "rating", evaluator=evaluator.path)["rating"]
    assert set(found.unscored.values()) == {NO_RATER}


def test_it_tells_how_well_the_logs_cover_the_context(tmp_path: Path) -> None:
    evaluator = open_small(make_evaluator(tmp_path / "small"))
    sitting = Sitting(Batch.of(ITEMS))

    def scored(name: str) -> Scored:
        metric = make_metric(Spec(name, (("evaluator", str(evaluator.path)),)))
        assert isinstance(metric, ItemMetric)
        return sitting.score(metric)

    rating, unreferenced = scored("rating"), scored("unreferenced")
    assert rating.expansion is not None
    assert rating.expansion is unreferenced.expansion, "looked up once"
