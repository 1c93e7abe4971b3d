"""Replies that nearly repeat another."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.text.repeats import Texts, normal_form, similarity


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I think so.", "I think so"),
        ("ＯＫ！", "ok"),
        ("そうだね～", "そうだね。"),
        ("I really think that is a great idea", "I realy think that is a great idea!"),
        ("I really think that is a great idea", "Well, I really think that is a great idea"),
        ("I have three cats and a dog at home", "At home I have three cats and a dog"),
        ("今日はとても良い天気ですね", "今日はとても良い天気ですよ"),
        ("👍", "👍 "),
    ],
)
def test_repeats(first: str, second: str) -> None:
    assert similarity(first, second) > 0.9
    assert similarity(second, first) == similarity(first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Yes, I do.", "No, I don't."),
        ("I do.", "I did."),
        ("👍", "👎"),
        ("I love cats very much", "I love bats very much"),
        ("Where are you going tonight?", "Where are you going tomorrow?"),
        ("今日はとても良い天気ですね", "今日はとても悪い天気ですね"),
        ("我觉得这个主意非常好呀", "我觉得这个主意非常不好呀"),
    ],
)
def test_different_replies(first: str, second: str) -> None:
    assert similarity(first, second) <= 0.9


def test_the_value() -> None:
    # abcdefghij has the bigrams ab bc cd de ef fg gh hi ij; abcdefghxy shares the first seven:
    # 2 * 7 / (9 + 9)
    assert similarity("abcdefghij", "abcdefgh xy") == pytest.approx(14 / 18)
    # aaaaaaaaaa has nine times aa, aaaaabbbbb four times: 2 * 4 / 18
    assert similarity("aaaaaaaaaa", "aaaaabbbbb") == pytest.approx(8 / 18)


def plain(first: str, second: str) -> float:
    a, b = normal_form(first), normal_form(second)
    if a == b:
        return 1.0
    if min(len(a), len(b)) < 10:
        return 0.0
    ours, theirs = (Counter(x + y for x, y in pairwise(t)) for t in (a, b))
    return 2 * sum((ours & theirs).values()) / (len(a) + len(b) - 2)


@given(
    st.text(st.sampled_from("ab c.今日😀é") | st.characters(), max_size=40),
    st.lists(st.text(st.sampled_from("ab c.今日😀é"), max_size=40), max_size=6),
    st.floats(0, 1),
)
def test_many_texts_at_once(text: str, others: list[str], limit: float) -> None:
    found = Texts(others).similarities(text, limit)
    for each, other in zip(found, others, strict=True):
        expected = plain(text, other)
        assert each == pytest.approx(expected) or (each == 0 and expected < limit)
        assert 0 <= each <= 1
