"""How well a pool covers a context, with words that are points of a plane."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from plane import write_plane

from evaluators import make_evaluator, open_small
from rejoinder.evaluator import Evaluator
from rejoinder.evaluator.coverage import Coverage, CoverageTally, quantiles
from rejoinder.items import Item, Reference
from rejoinder.learn.inputs.vectors import VectorInput

# cos(steep, up) = 0.8, cos(steep, right) = 0.6, cos(up, right) = 0, cos(left, right) = -1
ROWS = [([], "steep up", "up"), ([], "up", "right"), ([], "right", "steep"), ([], "left", "left")]


def items(*turns: str) -> list[Item]:
    return [Item(str(i), "hm", context=[t] if t else []) for i, t in enumerate(turns)]


@pytest.fixture
def evaluator(tmp_path: Path) -> Evaluator:
    by = f"vectors(vectors={write_plane(tmp_path / 'plane.txt')})"
    return open_small(make_evaluator(tmp_path / "small", ROWS, by=by, k=3))


def test_nearest_is_the_mean_similarity(evaluator: Evaluator) -> None:
    """steep is (3, 4): steep up (3, 6) / 2 has the cosine 33 / (5 · √45), up .8, right .6, and
    left -.6; all are among the five nearest."""
    (found,) = evaluator.expansion(items("steep")).coverage.nearest
    assert found == pytest.approx((33 / (5 * np.sqrt(45)) + 0.8 + 0.6 - 0.6) / 4, abs=1e-6)


def test_agreement_is_the_mean_cosine_of_replies(evaluator: Evaluator) -> None:
    """The three nearest to steep were answered by up, right and steep: (0 + .8 + .6) / 3."""
    found = evaluator.expansion(items("steep")).coverage.agreement
    assert found == pytest.approx([1.4 / 3], abs=1e-6)


def test_a_single_retrieved_reply_has_no_agreement(evaluator: Evaluator) -> None:
    assert np.isnan(evaluator.expansion(items("steep"), k=1).coverage.agreement).all()


def test_an_item_without_context_has_no_coverage(evaluator: Evaluator) -> None:
    covered = evaluator.expansion(items("", "steep", "zebra")).coverage
    assert np.isnan(covered.nearest).tolist() == [True, False, True]
    assert covered.record(0) is None
    record = covered.record(1)
    assert record is not None
    assert record.keys() == {"nearest", "agreement"}


def test_vectors_of_the_index_are_taken_where_it_has_them(tmp_path: Path) -> None:
    by = f"vectors(vectors={write_plane(tmp_path / 'plane.txt')},on=both)"
    evaluator = open_small(make_evaluator(tmp_path / "small", ROWS, by=by, k=3))
    (item,) = items("steep")
    asked = Item("1", "hm", context=item.context, references=[Reference("steep right")])
    both = evaluator.expansion([asked])
    vectors = {"up": (0, 1), "right": (1, 0), "steep": (0.6, 0.8), "left": (-1, 0)}
    replies = np.array([vectors[each.text] for each in both.retrieved[0] if each.row is not None])
    cosines = replies @ replies.T
    expected = cosines[np.triu_indices(len(replies), 1)].mean()
    assert both.coverage.agreement == pytest.approx([expected], abs=1e-6)


def test_a_pool_without_vectors_asks_those_of_the_scorer(tmp_path: Path) -> None:
    evaluator = open_small(make_evaluator(tmp_path / "small", ROWS, by="bm25", k=3))
    assert np.isnan(evaluator.expansion(items("steep up right")).coverage.agreement).all()

    class Inputs(VectorInput):
        def __init__(self) -> None:
            pass

        def sentence_vectors(self, texts: Sequence[str]) -> np.ndarray:
            vectors = {"up": (0, 1), "right": (1, 0), "steep": (0.6, 0.8)}
            return np.array([vectors[text] for text in texts], np.float32)

    evaluator.scorer.inputs = Inputs()
    del evaluator.encode
    found = evaluator.expansion(items("steep up right")).coverage.agreement
    assert found == pytest.approx([1.4 / 3], abs=1e-6)


def test_quantiles_of_held_out_contexts() -> None:
    found = quantiles(np.array([np.nan, *np.linspace(0, 1, 101)]))
    assert found["0.1"] == pytest.approx(0.1)
    assert found["0.5"] == pytest.approx(0.5)
    assert quantiles(np.array([np.nan])) == {}


@pytest.mark.parametrize(
    ("nearest", "outside"), [([0.1, 0.2, 0.3], True), ([0.1, 0.3, 0.4], False)]
)
def test_a_test_set_from_elsewhere(nearest: list[float], outside: bool) -> None:
    """Below the usual for half of it: 0.25 is what nine in ten of the held-out contexts reach."""
    tally = CoverageTally({"0.1": 0.25, "0.5": 0.6})
    tally.add(Coverage(np.array(nearest[:1]), np.array([np.nan])))
    tally.add(Coverage(np.array(nearest[1:]), np.array([0.5, 0.7])))
    covered = tally.summary()
    assert covered.outside is outside
    assert covered.nearest == nearest[1]
    assert covered.agreement == pytest.approx(0.6)


def test_without_items_there_is_no_coverage() -> None:
    covered = CoverageTally({}).summary()
    assert (covered.nearest, covered.outside) == (None, False)
