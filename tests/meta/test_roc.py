"""The area under the ROC curve, beside scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.meta.roc import area


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=60))
def test_as_scikit_learn(pairs: list[tuple[bool, int]]) -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    human, scores = np.array(pairs, float).T
    if len(set(human)) == 2:
        assert area(scores, human) == pytest.approx(sklearn.roc_auc_score(human, scores))
    else:
        assert area(scores, human) is None


def test_more_than_two_ratings_have_none() -> None:
    assert area(np.arange(3.0), np.arange(3.0)) is None
