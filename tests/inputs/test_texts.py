"""Lists of texts become items, and what does not fit together is named."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest

from rejoinder.errors import DataError, UsageError
from rejoinder.inputs.items import as_items
from rejoinder.inputs.texts import from_texts
from rejoinder.items import Item, Reference


def test_texts_become_items() -> None:
    assert from_texts(
        ["hello", ""],
        references=[["hi", Reference("hey", 0.5)], "yes"],
        contexts=[["a", "b"], "c\nd"],
        systems=["x", None],
        ratings=[{"ann": 2}, None],
    ) == [
        Item("0", "hello", ["a", "b"], "x", [Reference("hi"), Reference("hey", 0.5)], {"ann": 2.0}),
        Item("1", "", ["c", "d"], references=[Reference("yes")]),
    ]


def test_one_system_for_all_and_own_ids() -> None:
    items = from_texts(["a", "b"], systems="bot", ids=["p", 7])
    assert items == [Item("p", "a", system="bot"), Item("7", "b", system="bot")]


def test_chat_messages_are_turns() -> None:
    messages = [
        {"role": "system", "content": "be nice"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "text", "text": "hello"}]},
    ]
    (item,) = from_texts(["x"], contexts=[messages])
    assert item.context == ["hi", "hello"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"replies": "hello"}, "replies: expected a list with an entry for each reply; got one"),
        ({"replies": None}, "replies: expected a list of texts, got None"),
        ({"replies": ["a"], "references": ["b", "c"]}, "got 1 replies, 2 references"),
        ({"replies": ["a"], "contexts": 3}, "contexts: expected a list .* got int"),
    ],
)
def test_lists_that_do_not_fit_are_wrong_usage(arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        from_texts(**arguments)


def test_values_of_a_wrong_type_name_the_reply() -> None:
    with pytest.raises(DataError, match="reply 1: response: expected text, got a whole number"):
        from_texts(["a", 1])  # type: ignore[list-item]
    with pytest.raises(DataError, match=r"reply 0: context\[0\].content: expected text, or a mess"):
        from_texts(["a"], contexts=[[{"role": "user"}]])


def test_dictionaries_may_have_other_keys() -> None:
    notes: list[str] = []
    rows = [{"id": 1, "reply": "a", "refs": ["b"]}, {"id": 2, "reply": "c", "refs": []}]
    found = list(as_items(rows, {"response": "reply"}, notes.append)[0])
    assert found == [Item("1", "a"), Item("2", "c")]
    assert notes == [
        "the key 'refs' is not read; if it holds the references, add columns={'references': 'refs'}"
    ]


def test_a_frame_is_no_list_of_replies() -> None:
    with pytest.raises(UsageError, match="replies: expected a list with an entry for each reply"):
        from_texts(pd.DataFrame({"reply": ["a"]}))


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"id": "\ud800"}, "id"),
        ({"response": "a\udfff"}, "response"),
        ({"system": "\ud800"}, "system"),
        ({"context_id": "\ud800"}, "context_id"),
        ({"context": ["ä", "\ud83d \ude00"]}, "context[1]"),
        ({"references": [Reference("b"), Reference("\ud800")]}, "references[1].text"),
        ({"references": [Reference("b", source="\ud800")]}, "references[0].source"),
        ({"references": [Reference("b", ratings={"\ud800": 1})]}, "ratings"),
        ({"ratings": {"\ud800": 1}}, "ratings"),
    ],
)
def test_half_characters_are_refused(changes: dict[str, Any], place: str) -> None:
    """In items and in dictionaries alike."""
    item = msgspec.structs.replace(Item("1", "a", ["b", "😀"], "x"), **changes)
    for value in (item, msgspec.to_builtins(item)):
        with pytest.raises(DataError) as error:
            list(as_items([value])[0])
        assert str(error.value) == (
            f"item 0: {place}: the text has a lone surrogate (half of a character), which can't be"
            " written as UTF-8"
        )


def test_half_characters_in_lists_of_texts() -> None:
    with pytest.raises(DataError, match="reply 1: response: the text has a lone surrogate"):
        from_texts(["a", "\ud800"])


def test_an_item_with_a_number_as_its_text() -> None:
    """Items are not checked when they are made."""
    wrong: Any = 5
    with pytest.raises(DataError, match=r"item 0: context\[1\]: expected text"):
        list(as_items([Item("1", "a", ["b", wrong])])[0])


def test_numbers_of_numpy_in_items() -> None:
    three: Any = np.float32(3)
    items = [
        Item("1", "a", references=[Reference("b", weight=three / 3)], ratings={"ann": three}),
        Item("2", "a", ratings=[three, np.int64(1)]),
        Item("3", "a", ratings=three),
    ]
    read = list(as_items(items)[0])
    assert read == items
    assert [item.rating() for item in read] == [3, 2, 3]  # (3 + 1) / 2 = 2
    with pytest.raises(DataError, match="item 0: ratings: expected numbers from -1e"):
        list(as_items([Item("3", "a", ratings=three * 1e30)])[0])
