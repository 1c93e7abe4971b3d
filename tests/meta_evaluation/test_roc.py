"""The area under the ROC curve, beside scikit-learn; right replies that come first, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from rejoinder.fitting import validation
from rejoinder.meta_evaluation.roc import auc, recall_at_1, roc_auc


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=60))
def test_roc_auc_equals_scikit_learn(pairs: list[tuple[bool, int]]) -> None:
    human, scores = np.array(pairs, float).T
    if len(set(human)) == 2:
        assert roc_auc(scores, human) == pytest.approx(roc_auc_score(human, scores))
    else:
        assert roc_auc(scores, human) is None


def test_more_than_two_ratings_have_none() -> None:
    assert roc_auc(np.arange(3.0), np.arange(3.0)) is None


def test_right_and_wrong_ones_by_hand() -> None:
    right, wrong = np.array([0.9, 0.5]), np.array([0.5, 0.1, 0.95])
    # .9 beats two of three; .5 beats one and equals one
    assert auc(right, wrong) == pytest.approx((2 + 1.5) / 6)
    chance = np.random.default_rng(1)
    a, b = chance.normal(size=50).round(1), chance.normal(size=70).round(1)
    pairs = (a[:, None] > b).mean() + (a[:, None] == b).mean() / 2
    assert auc(a, b) == pytest.approx(pairs)
    scores, human = np.concatenate([a, b]), np.repeat([1.0, 0.0], [50, 70])
    assert roc_auc(scores, human) == auc(a, b)


def test_the_right_reply_comes_first() -> None:
    """Of three replies each, the first is right, and comes first: yes, no, with one other, with
    both; a context without a wrong reply and one without a right one don't count."""
    scores = np.array([3, 1, 2, 1, 2, 0, 2, 2, 1, 1, 1, 1, 5, 4, 9.0])
    human = np.array([1, 0, 0] * 4 + [1, 1, 0.0])
    contexts = np.array([7] * 3 + [3] * 3 + [5] * 3 + [1] * 3 + [8, 8, 9])
    found = recall_at_1(scores, human, contexts)
    assert found == pytest.approx((1 + 0 + 1 / 2 + 1 / 3) / 4)
    order = np.random.default_rng(0).permutation(15)
    assert recall_at_1(scores[order], human[order], contexts[order]) == pytest.approx(found)
    # two right ones: either may come first
    assert recall_at_1(np.array([1, 2, 0.0]), np.array([1, 1, 0.0]), np.zeros(3, int)) == 1
    assert recall_at_1(scores[-3:], human[-3:], contexts[-3:]) is None
    assert recall_at_1(scores, scores, contexts) is None


def test_validation_uses_the_same_auc() -> None:
    assert validation.auc is auc  # type: ignore[attr-defined]
