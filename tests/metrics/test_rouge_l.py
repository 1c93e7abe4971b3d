"""ROUGE-L by hand."""

from __future__ import annotations

import numpy as np
import pytest
from by_hand import corpus, rows, value

from rejoinder.metrics.metric import make_metric

ROUGE = "rouge-l(tok=whitespace)"


@pytest.mark.parametrize(
    ("reply", "reference", "expected"),
    [
        # a c d in common: P = 3/4, R = 3/5, F = 2 · 0.45 / 1.35 = 2/3
        ("a b c d", "a c x d y", 2 / 3),
        # only one order can be kept: LCS 1 of 2 and 2
        ("a b", "b a", 1 / 2),
        # repeated tokens count as often as they can be paired: LCS 2, P = 2/3, R = 1, F = 4/5
        ("a a a", "a a", 4 / 5),
        ("a", "a", 1.0),
        ("a", "b", 0.0),
        ("", "a", 0.0),
        ("今日 は いい 天気 です 。", "今日 は いい 天気 です 。", 1.0),
    ],
)
def test_value(reply: str, reference: str, expected: float) -> None:
    assert value(ROUGE, reply, reference) == pytest.approx(expected, abs=1e-12)


def test_beta_favours_recall() -> None:
    # P = 3/4, R = 3/5, β² = 4: 5 · 0.45 / (0.6 + 3) = 0.625
    spec = "rouge-l(beta=2,tok=whitespace)"
    assert value(spec, "a b c d", "a c x d y") == pytest.approx(0.625)


def test_corpus_is_the_mean_of_items() -> None:
    # 2/3 and 1/2
    assert corpus(ROUGE, ("a b c d", "a c x d y"), ("a b", "b a")) == pytest.approx(7 / 12)


def test_parts() -> None:
    metric, statistics = rows(ROUGE, ("a b c d", "a c x d y"))
    parts = {name: part.tolist() for name, part in metric.parts(statistics).items()}
    assert parts == {"precision": [0.75], "recall": [0.6]}


def test_any_leading_shape() -> None:
    metric, statistics = rows(ROUGE, ("a b", "b a"), ("a", "a"))
    stacked = np.broadcast_to(statistics, (3, 5, *statistics.shape))
    assert metric.values(stacked).shape == (3, 5, 2)
    assert np.all(metric.values(stacked) == [0.5, 1.0])


def test_beta_must_be_positive() -> None:
    with pytest.raises(Exception, match="beta=0 is not above 0"):
        make_metric("rouge-l(beta=0)")
