"""Who wrote a reply, in place of ratings."""

from __future__ import annotations

import pytest

from rejoinder.errors import UsageError
from rejoinder.items import Item
from rejoinder.meta_evaluation.authors import rated_by_author


def test_what_people_said_does_not_count() -> None:
    items = [
        Item(id="1", response="a", system="ann", ratings={"x": 1.0}),
        Item(id="2", response="b", system="bot", ratings=5.0),
        Item(id="3", response="c", system="bob"),
    ]
    rated = rated_by_author(items, ["ann", "bob"])
    assert [item.rating() for item in rated] == [1.0, 0.0, 1.0]
    assert [item.response for item in rated] == ["a", "b", "c"]
    assert items[0].rating() == 1.0
    assert items[2].rating() is None


def test_nobody_is_right_or_all_are() -> None:
    items = [Item(id="1", response="a", system="human"), Item(id="2", response="b", system="bot")]
    with pytest.raises(UsageError, match=r"no reply is of the system humans: .*human"):
        rated_by_author(items, ["humans"])
    with pytest.raises(UsageError, match="no reply is left to be wrong"):
        rated_by_author(items, ["bot", "human"])
