"""Word error rate by hand."""

from __future__ import annotations

import numpy as np
import pytest
from by_hand import corpus, rows, value

from rejoinder.metrics.metric import make_metric

WER = "wer(tok=whitespace)"
CLASSICAL = "wer(norm=reference,tok=whitespace)"


@pytest.mark.parametrize(
    ("reply", "reference", "expected"),
    [
        # see → saw, + big: 2 edits, 5 words
        ("i see a dog", "i saw a big dog", 3 / 5),
        # two substitutions in two words
        ("a b", "b a", 0.0),
        # one deletion, the longer text has 3
        ("a a a", "a a", 2 / 3),
        ("a", "a", 1.0),
        ("", "a", 0.0),
    ],
)
def test_similarity(reply: str, reference: str, expected: float) -> None:
    assert value(WER, reply, reference) == pytest.approx(expected, abs=1e-12)
    signed = value("wer(signed=true,tok=whitespace)", reply, reference)
    assert signed == pytest.approx(2 * expected - 1, abs=1e-12)


@pytest.mark.parametrize(
    ("reply", "reference", "expected"),
    [
        # one deletion over 2 words of the reference
        ("a a a", "a a", 1 / 2),
        # 3 deletions over 1 word: a rate of 3, cut off at 1
        ("a b c d", "a", 0.0),
        ("", "a b", 0.0),
    ],
)
def test_per_word_of_the_reference(reply: str, reference: str, expected: float) -> None:
    assert value(CLASSICAL, reply, reference) == pytest.approx(expected, abs=1e-12)


def test_corpus_adds_up_edits_and_lengths() -> None:
    # 2 edits over 5, and 1 over 3: 3/8
    pairs = ("i see a dog", "i saw a big dog"), ("a a a", "a a")
    assert corpus(WER, *pairs) == pytest.approx(5 / 8)
    # 2 over 5 and 1 over 2: 3/7
    assert corpus(CLASSICAL, *pairs) == pytest.approx(4 / 7)


def test_corpus_of_the_classical_rate_is_cut_off_last() -> None:
    # 3 over 1 and 0 over 5: 3/6, though the first alone is cut off
    assert corpus(CLASSICAL, ("a b c d", "a"), ("a b c d e", "a b c d e")) == pytest.approx(0.5)


def test_any_leading_shape() -> None:
    metric, statistics = rows(WER, ("a b", "b a"), ("a", "a"))
    stacked = np.broadcast_to(statistics, (3, 5, *statistics.shape))
    assert np.all(metric.values(stacked) == [0.0, 1.0])
    assert metric.parts(statistics)["error_rate"].tolist() == [1.0, 0.0]


def test_unknown_norm() -> None:
    with pytest.raises(Exception, match="norm=shorter is not one of longer, reference"):
        make_metric("wer(norm=shorter)")
