"""chrF and chrF++ by hand."""

from __future__ import annotations

import numpy as np
import pytest
from by_hand import corpus, rows, value

from rejoinder.metrics.metric import make_metric


@pytest.mark.parametrize(
    ("spec", "reply", "reference", "expected"),
    [
        # c a t of 3 and 4, ca at of 2 and 3: P = 1, R = 17/24, 5 · 17/24 / (4 + 17/24) = 85/113
        ("chrf(n=2)", "cat", "cats", 85 / 113),
        # the same with β = 1: 2 · 17/24 / (1 + 17/24) = 34/41
        ("chrf(n=2,beta=1)", "cat", "cats", 34 / 41),
        # repeated: 2 of 3 and 2 of 2, aa 1 of 2 and 1 of 1: P = 7/12, R = 1, 35/12 / (40/12)
        ("chrf(n=2)", "aaa", "aa", 35 / 40),
        # orders 2 to 6 do not count: neither has n-grams of them
        ("chrf", "a", "a", 1.0),
        # order 2 does not count, the reply has none of it: P = 1, R = 1/2, 2.5 / 4.5
        ("chrf(n=2)", "a", "ab", 5 / 9),
        # white space is no character
        ("chrf", "a b c", "ab c", 1.0),
        ("chrf", "Ab", "ab", 5 * 0.25 * 0.25 / (4 * 0.25 + 0.25)),
        ("chrf(lower=true)", "Ab", "ab", 1.0),
        # characters of "a b!" and "a c!": 2 of 3 (order 1 only); words a b ! and a c !: 2 of 3,
        # so P = R = 2/3
        ("chrf(n=1,words=1)", "a b!", "a c!", 2 / 3),
        # the word bigrams "a b", "b !" and "a c", "c !" share nothing: (2/3 + 2/3 + 0) / 3
        ("chrf(n=1,words=2)", "a b!", "a c!", 4 / 9),
        ("chrf", "abc", "xyz", 0.0),
        ("chrf", "", "a", 0.0),
        ("chrf(words=2)", "今日はいい天気です。", "今日はいい天気です。", 1.0),
    ],
)
def test_value(spec: str, reply: str, reference: str, expected: float) -> None:
    assert value(spec, reply, reference) == pytest.approx(expected, abs=1e-12)


def test_corpus_adds_up_counts() -> None:
    # cat/cats and a/b at n = 1: 3 of 4 and 3 of 5: 5 · 0.75 · 0.6 / (3 + 0.6) = 0.625
    assert corpus("chrf(n=1)", ("cat", "cats"), ("a", "b")) == pytest.approx(0.625)


def test_a_reply_without_counterpart_adds_no_ngrams() -> None:
    # the reference "a" has no bigram, so the reply to it does not lower their precision:
    # P = (3/8 + 1/1) / 2 = 11/16, R = 1, 5 · 11/16 / (4 · 11/16 + 1) = 55/60
    assert corpus("chrf(n=2)", ("ab", "ab"), ("abcdef", "a")) == pytest.approx(55 / 60)


def test_parts() -> None:
    metric, statistics = rows("chrf(n=2)", ("cat", "cats"))
    parts = {name: part.tolist() for name, part in metric.parts(statistics).items()}
    assert parts == {"precision": [1.0], "recall": [pytest.approx(17 / 24)]}


def test_any_leading_shape() -> None:
    metric, statistics = rows("chrf(words=2)", ("a", "a"), ("a", "b"))
    stacked = np.broadcast_to(statistics, (3, 5, *statistics.shape))
    assert np.all(metric.values(stacked) == [1.0, 0.0])


def test_wrong_orders_are_refused() -> None:
    with pytest.raises(Exception, match="n=0 is not from 1 to 16"):
        make_metric("chrf(n=0)")
    with pytest.raises(Exception, match="words=17 is not from 0 to 16"):
        make_metric("chrf(words=17)")
