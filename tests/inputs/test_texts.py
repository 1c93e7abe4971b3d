"""Lists of texts become items, and what does not fit together is named."""

from __future__ import annotations

from typing import Any

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
        "the key 'refs' is not read; if it holds the references,"
        " pass columns={'references': 'refs'}"
    ]


def test_a_frame_is_no_list_of_replies() -> None:
    with pytest.raises(UsageError, match="replies: expected a list with an entry for each reply"):
        from_texts(pd.DataFrame({"reply": ["a"]}))


def test_half_characters_are_refused() -> None:
    with pytest.raises(DataError, match="reply 1: a text has a lone surrogate"):
        from_texts(["a", "\ud800"])
    with pytest.raises(DataError, match="item 0: a text has a lone surrogate"):
        list(as_items([{"id": "1", "response": "\ud800"}])[0])
