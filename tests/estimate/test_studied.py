"""What is known of a study before it goes on."""

from __future__ import annotations

import numpy as np
import pytest

from rejoinder.estimation.planning import units_of
from rejoinder.estimation.studied import study_of
from rejoinder.items import Item

NAN = float("nan")


def test_unscored_replies_are_average_ones() -> None:
    """Ratings 1, 1, 2, 4, 5, 5 of each system, with scores of the same order from 50 on, but for
    the third, whose score is missing: it counts as the mean of the others, 52.2 and 152.2, not as
    0, which would make the correlation negative."""
    ratings, scores = [1, 1, 2, 4, 5, 5], [50.0, 50, NAN, 53, 54, 54]
    items = [
        Item(f"{n}{s}", "r", system=s, context_id=f"{n}", ratings=float(rating))
        for s in "ab"
        for n, rating in enumerate(ratings)
    ]
    row = np.array([*scores, *(score + 100 for score in scores)])
    units = units_of(items, "mean", ["a", "b"])
    study, rated = study_of(items, row, units, ["a", "b"], "mean")
    filled = np.where(np.isnan(row[:6]), 52.2, row[:6])
    r = np.corrcoef(ratings, filled)[0, 1]
    # corrected for its bias with 12 replies: 1 - (1 - r²) 11 / 10
    assert study.spread.correlation == pytest.approx(np.sqrt(1 - (1 - r * r) * 1.1))
    assert r > 0.95 and rated == 6
