"""``unreferenced``: scores by hand, and items that cannot be scored."""

from __future__ import annotations

from pathlib import Path

import pytest
from scoring import score

from evaluators import make_evaluator, open_small, scorer_of
from rejoinder.evaluator import Evaluator
from rejoinder.items import Item, Reference


@pytest.fixture
def evaluator(tmp_path: Path) -> Evaluator:
    return open_small(make_evaluator(tmp_path / "small"))


def test_scores_by_hand(evaluator: Evaluator) -> None:
    items = [
        Item("1", "i like cheese", context=["hello", "do you like cheese"]),
        Item("2", "no", context=["do you like cheese"], references=[Reference("no", weight=-1.0)]),
        Item("3", " \n", context=["do you like cheese"]),
        Item("4", "no", context=[" "]),
        Item("5", "no"),
    ]
    found = score(items, "unreferenced", evaluator)
    # (1 + words shared) / (2 + words), see CountingScorer
    assert found.values[:3] == pytest.approx([3 / 5, 1 / 3, 0.0])
    assert found.unscored == {"4": "no context", "5": "no context"}
    (corpus,) = found.corpus.values()
    assert corpus is not None
    assert corpus.value == pytest.approx((3 / 5 + 1 / 3) / 3)
    assert (["hello", "do you like cheese"], "i like cheese") in scorer_of(evaluator).inputs_seen
