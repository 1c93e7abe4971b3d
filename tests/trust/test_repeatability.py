"""Repeatability: by hand, by the planted variance, and from the spread of answers."""

from __future__ import annotations

import numpy as np
import pytest

from rejoinder.meta_evaluation.annotators import Resampling
from rejoinder.metrics.costs import MetricCost
from rejoinder.trust.cost import cost_of, judged_cost
from rejoinder.trust.repeatability import repeatability, repeatability_of_answers

NONE = Resampling(0)


def test_icc_by_hand() -> None:
    # runs 1 2 3 and 1 4 3: means 1 3 3, mean 7/3
    # B = 2 / 2 * ((4/3)² + 2 (2/3)²) = 16/9 + 8/9 = 8/3;  W = (0 + 2 + 0) / 3 = 2/3
    # ICC = (8/3 - 2/3) / (8/3 + 2/3) = .6; of the mean 2 * .6 / 1.6 = .75
    found = repeatability(np.array([[1.0, 2, 3], [1, 4, 3]]), np.arange(3), NONE)
    assert found is not None
    assert (found.runs, found.n) == (2, 3)
    assert found.icc.value == pytest.approx(0.6)
    assert found.icc_of_mean == pytest.approx(0.75)
    assert found.deviation == pytest.approx(np.sqrt(2 / 3))
    assert found.same == pytest.approx(2 / 3)


def test_the_spread_of_answers_gives_the_same_as_the_answers() -> None:
    rng = np.random.default_rng(0)
    runs = rng.normal(0, 1, 60) + rng.normal(0, 0.7, (5, 60))
    contexts = np.arange(60) // 3
    resampling = Resampling(300, 3)
    direct = repeatability(runs, contexts, resampling)
    known = repeatability_of_answers(
        runs.mean(axis=0), runs.std(axis=0, ddof=1), np.full(60, 5.0), contexts, resampling
    )
    assert direct is not None and known is not None
    assert known.icc.value == pytest.approx(direct.icc.value)
    assert known.icc.low == pytest.approx(direct.icc.low)
    assert known.deviation == pytest.approx(direct.deviation)
    assert known.same is None


@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_a_planted_share_is_found(noise: float) -> None:
    inside = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        runs = rng.normal(0, 1, 200) + rng.normal(0, noise, (2, 200))
        found = repeatability(runs, np.arange(200), Resampling(200, seed))
        assert found is not None and found.icc.low is not None and found.icc.high is not None
        inside += found.icc.low <= 1 / (1 + noise**2) <= found.icc.high
    assert inside >= 11  # 14.25 expected


def test_equal_runs_agree_and_unscored_replies_do_not_count() -> None:
    scores = np.array([1.0, 2, 3, np.nan])
    found = repeatability(np.array([scores, [1, 2, 3, 4]]), np.arange(4), NONE)
    assert found is not None
    assert (found.icc.value, found.same, found.deviation, found.n) == (1.0, 1.0, 0.0, 3)


def test_there_is_nothing_to_compare() -> None:
    assert repeatability(np.array([[1.0, 2], [1, 2]]), np.arange(2), NONE) is None
    one = np.ones(5)
    assert repeatability_of_answers(np.arange(5.0), one * 0, one, np.arange(5), NONE) is None
    constant = repeatability(np.ones((2, 5)), np.arange(5), NONE)
    assert constant is not None and constant.icc.value is None and constant.icc_of_mean is None


def test_cost_by_hand() -> None:
    # 50 replies, 100 requests, 10,000 tokens, 25 s; of 1,000 replies 2,000, 200,000 and 500 s;
    # a correlation of .4 is 40 points: 50 requests, 5,000 tokens and 12.5 s each
    found = cost_of(MetricCost(50, 25.0, 100, 10_000), 0.4)
    assert (found.requests, found.tokens, found.seconds) == (2_000, 200_000, 500)
    assert found.requests_per_point == pytest.approx(50)
    assert found.tokens_per_point == pytest.approx(5_000)
    assert found.seconds_per_point == pytest.approx(12.5)
    assert cost_of(MetricCost(50, 25.0), -0.1).seconds_per_point is None
    assert cost_of(MetricCost(50, 25.0), None).seconds_per_point is None


def test_the_cost_of_a_judge_is_in_its_scores() -> None:
    judging = {
        "requests": np.array([1.0, 2, np.nan]),
        "tokens": np.array([100.0, 50, np.nan]),
        "seconds": np.array([0.5, 1.5, np.nan]),
    }
    assert judged_cost(judging) == MetricCost(2, 2.0, 3, 150)
    assert judged_cost({}) is None
    assert judged_cost({"requests": np.array([np.nan])}) is None
