"""RIBES by hand."""

from __future__ import annotations

import numpy as np
import pytest
from by_hand import corpus, rows, value

RIBES = "ribes(tok=whitespace)"


@pytest.mark.parametrize(
    ("reply", "reference", "expected"),
    [
        # the three examples of Isozaki et al. 2010; ranks 2 1 0 3: 3 of 6 pairs ascend
        ("bob hit john yesterday", "john hit bob yesterday", 1 / 2),
        # the (boy) (book) by their right neighbour: 3 4 2 0 1, 2 of 10 pairs; 5 of 7 aligned
        ("the book was read by the boy", "the boy read the book", 0.2 * (5 / 7) ** 0.25),
        # 7 8 9 10 6 0 1 2 3 4 5: 6 + 15 of 55 pairs
        (
            "he read the book because he was interested in world history",
            "he was interested in world history because he read the book",
            21 / 55,
        ),
        # brevity: all in order, |r| / |h| = 2
        ("a b", "a b c d", np.exp(-1) ** 0.1),
        # a longer reply is not short, but less precise
        ("a b c d", "a b", (2 / 4) ** 0.25),
        # fewer than two aligned words have no order
        ("a x", "a y", 0.0),
        # except where the reference has no more than one word
        ("a", "a", 1.0),
        ("a b", "a", (1 / 2) ** 0.25),
        ("b", "a", 0.0),
        ("", "a", 0.0),
    ],
)
def test_value(reply: str, reference: str, expected: float) -> None:
    assert value(RIBES, reply, reference) == pytest.approx(expected, abs=1e-12)


def test_a_repetition_is_perfect_if_equal() -> None:
    # only the ends of "no no no" have a context that stands once: 2 of 3 words are aligned
    assert value(RIBES, "no no no", "no no no") == 1.0
    strict = value("ribes(perfect=false,tok=whitespace)", "no no no", "no no no")
    assert strict == pytest.approx((2 / 3) ** 0.25)


def test_the_left_context_may_reach_the_first_word() -> None:
    # each end of "a a a a" by all the words on one side, the inner two not at all
    strict = value("ribes(perfect=false,tok=whitespace)", "a a a a", "a a a a")
    assert strict == pytest.approx((2 / 4) ** 0.25)


def test_exponents() -> None:
    # as above: 5 of 7 aligned, 2 of 10 pairs, and α = 1
    spec = "ribes(alpha=1,beta=0,tok=whitespace)"
    found = value(spec, "the book was read by the boy", "the boy read the book")
    assert found == pytest.approx(0.2 * 5 / 7)


def test_corpus_is_the_mean_of_items() -> None:
    pairs = ("bob hit john yesterday", "john hit bob yesterday"), ("a", "a")
    assert corpus(RIBES, *pairs) == pytest.approx(0.75)


def test_parts() -> None:
    metric, statistics = rows(RIBES, ("a b c d", "b a"), ("a b", "a b c d"))
    parts = metric.parts(statistics)
    # b a in the other order, 2 of 4 words; then in order, 2 of 2, too short by half
    assert parts["nkt"].tolist() == [0.0, 1.0]
    assert parts["p1"].tolist() == [0.5, 1.0]
    assert parts["bp"].tolist() == pytest.approx([1.0, np.exp(-1)])


def test_any_leading_shape() -> None:
    metric, statistics = rows(RIBES, ("a b", "b a"), ("a", "a"))
    stacked = np.broadcast_to(statistics, (3, 5, *statistics.shape))
    assert np.all(metric.values(stacked) == [0.0, 1.0])
