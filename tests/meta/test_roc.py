"""The area under the ROC curve, beside scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from rejoinder.fit import figures
from rejoinder.meta.roc import area, auc


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=60))
def test_as_scikit_learn(pairs: list[tuple[bool, int]]) -> None:
    human, scores = np.array(pairs, float).T
    if len(set(human)) == 2:
        assert area(scores, human) == pytest.approx(roc_auc_score(human, scores))
    else:
        assert area(scores, human) is None


def test_more_than_two_ratings_have_none() -> None:
    assert area(np.arange(3.0), np.arange(3.0)) is None


def test_right_and_wrong_ones_by_hand() -> None:
    right, wrong = np.array([0.9, 0.5]), np.array([0.5, 0.1, 0.95])
    # .9 beats two of three; .5 beats one and equals one
    assert auc(right, wrong) == pytest.approx((2 + 1.5) / 6)
    chance = np.random.default_rng(1)
    a, b = chance.normal(size=50).round(1), chance.normal(size=70).round(1)
    pairs = (a[:, None] > b).mean() + (a[:, None] == b).mean() / 2
    assert auc(a, b) == pytest.approx(pairs)
    scores, human = np.concatenate([a, b]), np.repeat([1.0, 0.0], [50, 70])
    assert area(scores, human) == auc(a, b)


def test_it_is_written_once() -> None:
    assert figures.auc is auc  # type: ignore[attr-defined]
