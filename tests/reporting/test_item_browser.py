"""The data inside the page: safe, short, and what it was."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rejoinder.items import Item, Reference
from rejoinder.registry import TOKENIZERS
from rejoinder.reporting.page.item_browser import (
    MAX_CHARACTERS,
    MAX_REFERENCES,
    browser_data,
    embedded,
)
from rejoinder.reporting.page.sample import choose
from reporting.replies import HOSTILE, replies, report_data, scored, scores

TOKENIZER = TOKENIZERS.make("13a")


@given(st.text())
def test_embedded_text_is_safe_and_comes_back(text: str) -> None:
    found = embedded([text, {text: 1}])
    assert not set("<>&\u2028\u2029") & set(found.decode())
    assert json.loads(found) == [text, {text: 1}]


def payload(items: list[Item], found: Any, most: int = 1000, size: int = 10**6) -> dict[str, Any]:
    whole = report_data(items, found)
    made = browser_data(whole, choose(whole, most, 0), TOKENIZER, max_bytes=size)
    return json.loads(made.payload) | {"count": made.items, "of": made.of, "cut": made.cut}


def test_every_text_is_stored_once() -> None:
    items = replies(6)
    found = payload(items, scores(items))
    assert len(found["texts"]) == len(set(found["texts"]))
    assert found["count"] == found["of"] == len(items)
    for item, row in zip(items, found["items"], strict=True):
        assert row[0] == item.id
        assert found["systems"][row[1]] == item.system
        assert [found["texts"][n] for n in row[2]] == item.context
        assert found["texts"][row[3]] == item.response
        assert row[5] == item.rating()
        assert [found["texts"][r[0]] for r in row[7]] == [r.text for r in item.references]
        assert [r[1] for r in row[7]] == [r.weight for r in item.references]
    assert found["reasons"] == [HOSTILE[0]]
    first = found["items"][0]
    assert first[6][1] is None  # the second metric could not score it
    assert first[9] == {"1": 0}


def test_marks_are_counted_as_javascript_counts() -> None:
    text = "😀 smile 𝒳 and"
    item = Item(id="1", response=text, references=[Reference("smile and")])
    row = payload([item], scored("m", [item], [1.0]))["items"][0]
    units = text.encode("utf-16-le")
    words = [
        units[2 * begin : 2 * end].decode("utf-16-le")
        for begin, end in zip(row[4][::2], row[4][1::2], strict=True)
    ]
    assert words == ["smile", "and"]


def test_fewer_items_where_the_page_has_no_room() -> None:
    items = replies(50)
    found = payload(items, scores(items), size=20_000)
    assert 10 < found["count"] < 200
    assert found["of"] == 200
    assert len(json.dumps(found, ensure_ascii=False).encode()) < 23_000


def test_long_texts_and_lists_are_cut() -> None:
    many = [Reference(f"r{n}", (n % 100) / 100) for n in range(300)]
    item = Item(id="1", response="x" * 50_000, context=["y"] * 500, references=many)
    found = payload([item], scored("m", [item], [1.0]))
    row = found["items"][0]
    assert found["cut"]
    assert len(found["texts"][row[3]]) < MAX_CHARACTERS + 5
    assert len(row[7]) == MAX_REFERENCES
    assert row[8] == 300 - MAX_REFERENCES
    assert min(reference[1] for reference in row[7]) >= 0.86  # the weightiest 14 of each hundred
    assert len(json.dumps(found)) < 10_000
