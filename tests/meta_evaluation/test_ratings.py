"""Labels by system in place of ratings."""

from __future__ import annotations

import pytest

from rejoinder.errors import UsageError
from rejoinder.items import Item
from rejoinder.meta_evaluation.ratings import label_by_system


def test_labels_replace_ratings() -> None:
    items = [
        Item(id="1", response="a", system="ann", ratings={"x": 1.0}),
        Item(id="2", response="b", system="bot", ratings=5.0),
        Item(id="3", response="c", system="bob"),
    ]
    rated = label_by_system(items, ["ann", "bob"])
    assert [item.rating() for item in rated] == [1.0, 0.0, 1.0]
    assert [item.response for item in rated] == ["a", "b", "c"]
    assert items[0].rating() == 1.0
    assert items[2].rating() is None


def test_unknown_systems_and_no_wrong_replies_are_refused() -> None:
    items = [Item(id="1", response="a", system="human"), Item(id="2", response="b", system="bot")]
    with pytest.raises(UsageError, match=r"no reply is of the system humans: .*human"):
        label_by_system(items, ["humans"])
    with pytest.raises(UsageError, match="no system is left whose replies are wrong"):
        label_by_system(items, ["bot", "human"])
