"""Whether people used one scale, as far as their ratings show it."""

from __future__ import annotations

import pytest

from rejoinder.errors import DataError
from rejoinder.estimation.people import check_one_scale
from rejoinder.items import Item


def rated(**ratings: list[float]) -> list[Item]:
    """Replies that all people rated."""
    rows = zip(*ratings.values(), strict=True)
    return [
        Item(str(n), "fine", ratings=dict(zip(ratings, row, strict=True)))
        for n, row in enumerate(rows)
    ]


def test_a_strict_person_is_not_on_another_scale() -> None:
    """Of 12 ratings by ann, 4 are above 1: (8/12)^12 = .008 that a like-minded person has none."""
    ann = [0, 1, 2, 1, 0, 2, 0, 1, 2, 0, 1, 2.0]
    check_one_scale(rated(ann=ann, bob=[0, 1, 0, 1] * 3), None)


def test_other_scales_are_refused() -> None:
    """Of 20 ratings by ann, 18 are above 5: (2/20)^20 = 1e-20."""
    ann = [10.0 * n for n in range(1, 11)] * 2
    ann[:2] = [4, 5]
    bob = [1, 2, 3, 4, 5.0] * 4
    with pytest.raises(DataError, match="those of 'ann' from 4 to 100: ratings on different"):
        check_one_scale(rated(ann=ann, bob=bob), None)
    check_one_scale(rated(ann=ann, bob=bob), (0, 100))
    with pytest.raises(DataError, match="a rating is 30, which is not on the scale from 1 to 5"):
        check_one_scale(rated(ann=ann, bob=bob), (1, 5))
