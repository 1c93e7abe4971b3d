"""Distinct texts and the way back to all of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rejoinder.text.distinct import distinct, number_distinct


@given(st.lists(st.text(max_size=2)))
def test_distinct_texts_give_back_all_texts(texts: list[str]) -> None:
    unique, rows = distinct(texts)
    assert [unique[row] for row in rows] == texts
    assert unique == list(dict.fromkeys(texts))
    assert number_distinct(texts) == {text: number for number, text in enumerate(unique)}
