"""The alternative-annotator test: by hand, against its own definition, and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from rejoinder.meta_evaluation.annotators import Resampling
from rejoinder.meta_evaluation.significance import benjamini_yekutieli
from rejoinder.trust.alternative import (
    Alignment,
    AlternativeTest,
    alternative_test,
    not_worse_p,
)

Floats = NDArray[np.float64]
NONE = Resampling(0)


def run(
    table: Floats,
    values: Floats,
    contexts: NDArray[np.int64] | None = None,
    alignment: Alignment = "rmse",
    epsilon: float = 0.1,
    resampling: Resampling = NONE,
) -> AlternativeTest:
    names = [f"a{number}" for number in range(len(table))]
    where = np.arange(table.shape[1]) if contexts is None else contexts
    found = alternative_test(
        names, table, values, where, alignment=alignment, epsilon=epsilon, resampling=resampling
    )
    assert found is not None
    return found


def crowd(rng: np.random.Generator, replies: int, noise: list[float]) -> tuple[Floats, Floats]:
    """Return a quality for each reply, and the ratings of annotators with this noise."""
    quality = rng.normal(3, 1, replies)
    rated = [np.clip(np.rint(quality + rng.normal(0, each, replies)), 1, 5) for each in noise]
    return quality, np.array(rated)


def test_advantages_by_hand() -> None:
    # Forty replies, ten times these four ratings of annotators a, b, c and a judge:
    #          a  b  c  judge
    #   i      1  2  3    2
    #   ii     4  4  4    4
    #   iii    5  1  1    3
    #   iv     2  2  5    1
    # Squared errors, a against b and c: i  a: 1+4, judge: 0+1 → judge; ii 0, 0 → both;
    #   iii a: 16+16, judge: 4+4 → judge; iv a: 0+9, judge: 1+16 → a.
    #   judge 3/4, a 2/4.
    # b against a and c: i b: 1+1, judge 1+1 → both; ii both; iii b: 16+0, judge: 4+4 → judge;
    #   iv b: 0+9, judge: 1+16 → b.   judge 3/4, b 3/4.
    # c against a and b: i c: 4+1, judge: 1+0 → judge; ii both; iii c: 16+0, judge: 4+4 → judge;
    #   iv c: 9+9, judge: 1+1 → judge.   judge 4/4, c 1/4.
    table = np.tile(np.array([[1, 4, 5, 2], [2, 4, 1, 2], [3, 4, 1, 5]], float), 10)
    found = run(table, np.tile([2.0, 4.0, 3.0, 1.0], 10))
    assert [(each.judge, each.human) for each in found.annotators] == [
        (0.75, 0.5),
        (0.75, 0.75),
        (1.0, 0.25),
    ]
    assert found.advantage.value == pytest.approx(2.5 / 3)
    # lead of the judge over b: 0, 0, 1, -1: mean 0, variance 10 * 2 / 39;
    # t = (0 + .1) / sqrt(20 / 39 / 40) = .883176, 39 degrees of freedom
    b = found.annotators[1]
    assert b.p == pytest.approx(float(stats.t.sf(0.1 / math.sqrt(20 / 39 / 40), 39)))
    assert b.p == pytest.approx(0.19128, abs=1e-4)


def test_accuracy_by_hand() -> None:
    # One kind of reply: a and b say 1, c says 0, the judge says 1.
    # a against b, c: half of the others agree, also with the judge: both; b the same;
    # c against a, b: none agrees with c, both with the judge.
    table = np.tile(np.array([[1.0], [1.0], [0.0]]), 30)
    found = run(table, np.ones(30), alignment="accuracy")
    assert [(each.judge, each.human) for each in found.annotators] == [(1, 1), (1, 1), (1, 0)]
    # no variance: a tie everywhere is above -epsilon for certain
    assert [each.p for each in found.annotators] == [0, 0, 0]
    assert (found.winning_rate, found.passed) == (1.0, True)


def test_wins_are_those_of_the_procedure_of_benjamini_and_yekutieli() -> None:
    rng = np.random.default_rng(3)
    quality, table = crowd(rng, 120, [0.3, 0.6, 0.9, 1.2, 1.5])
    found = run(table, quality + rng.normal(0, 0.6, 120))
    p = [each.p for each in found.annotators]
    adjusted = stats.false_discovery_control(p, method="by")
    assert [each.adjusted for each in found.annotators] == pytest.approx(list(adjusted))
    assert [each.won for each in found.annotators] == list(adjusted <= 0.05)
    assert found.winning_rate == np.mean(adjusted <= 0.05)
    assert 0 < found.winning_rate < 1  # the case tells something


@pytest.mark.parametrize("seed", range(20))
def test_adjusted_p_values_are_those_of_scipy(seed: int) -> None:
    p = np.random.default_rng(seed).random(7) ** 3
    assert benjamini_yekutieli(p) == pytest.approx(stats.false_discovery_control(p, method="by"))


def test_adjusted_p_values_by_hand() -> None:
    # m = 3, c = 1 + 1/2 + 1/3 = 11/6, m c = 5.5: .01 * 5.5 = .055, .02 * 5.5 / 2 = .055,
    # .9 * 5.5 / 3 = 1.65 → 1; what was not tested stays out
    assert benjamini_yekutieli([0.9, np.nan, 0.01, 0.02]) == pytest.approx(
        [1, np.nan, 0.055, 0.055], nan_ok=True
    )
    with pytest.raises(ValueError, match="between 0 and 1"):
        benjamini_yekutieli([1.2])


def test_without_shared_contexts_p_is_that_of_the_t_test() -> None:
    lead = np.random.default_rng(0).integers(-1, 2, 50).astype(float)
    expected = stats.ttest_1samp(-lead, 0.15, alternative="less").pvalue
    assert not_worse_p(lead, np.arange(50), 0.15) == pytest.approx(expected)


def test_replies_to_one_context_count_together() -> None:
    # each context twice: with the same lead both times, the copies add nothing: sums over 25
    # contexts are 2 d, n is 50, so the error is sqrt(25/24 Σ (2 d)²) / 50 = that of 25 replies
    lead = np.random.default_rng(1).integers(-1, 2, 25).astype(float)
    once = not_worse_p(lead, np.arange(25), 0.1)
    twice = not_worse_p(np.repeat(lead, 2), np.repeat(np.arange(25), 2), 0.1)
    assert twice == pytest.approx(once)
    assert not_worse_p(np.repeat(lead, 2), np.arange(50), 0.1) != pytest.approx(once)


def test_a_judge_as_good_as_the_best_annotator_wins_and_noise_loses() -> None:
    rng = np.random.default_rng(5)
    quality, table = crowd(rng, 150, [0.8] * 5)
    good = run(table, np.clip(np.rint(quality), 1, 5))
    bad = run(table, rng.integers(1, 6, 150).astype(float))
    assert good.passed and good.winning_rate == 1
    assert not bad.passed and bad.winning_rate == 0
    assert (good.advantage.value or 0) > 0.5 > (bad.advantage.value or 1)


def test_rejections_where_the_hypothesis_holds_stay_below_the_level() -> None:
    """A judge who is worse by just epsilon is let through by single tests in about 5 %."""
    rng = np.random.default_rng(11)
    wrong = 0
    for _ in range(400):
        # leads of -1, 0, 1 with mean -.1
        lead = rng.choice([-1.0, 0.0, 1.0], 100, p=[0.35, 0.4, 0.25])
        wrong += not_worse_p(lead, np.arange(100), 0.1) <= 0.05
    # 20 expected, standard deviation sqrt(400 * .05 * .95) = 4.4
    assert 8 <= wrong <= 34


def test_annotators_with_few_shared_replies_are_left_out() -> None:
    _, table = crowd(np.random.default_rng(2), 60, [0.5] * 4)
    table[3, 29:] = np.nan  # 29 replies: one too few
    found = run(table, table[0])
    assert found.left_out == 1
    assert [each.annotator for each in found.annotators] == ["a0", "a1", "a2"]
    assert all(each.n == 60 for each in found.annotators)
    table[2, 29:] = np.nan
    names = ["a0", "a1", "a2", "a3"]
    where = np.arange(60)
    test = alternative_test(names, table, table[0], where, alignment="rmse", resampling=NONE)
    assert test is None


def test_an_annotator_is_not_compared_where_nobody_else_rated() -> None:
    _, table = crowd(np.random.default_rng(2), 60, [0.5] * 3)
    table[1:, :10] = np.nan
    found = run(table, np.full(60, 3.0))
    assert [each.n for each in found.annotators] == [50, 50, 50]


def test_unscored_replies_do_not_count() -> None:
    quality, table = crowd(np.random.default_rng(2), 60, [0.5] * 3)
    quality[:20] = np.nan
    assert [each.n for each in run(table, quality).annotators] == [40, 40, 40]


def test_the_interval_of_the_advantage_contains_its_value() -> None:
    quality, table = crowd(np.random.default_rng(8), 80, [0.7] * 4)
    found = run(table, quality, np.arange(80) // 2, resampling=Resampling(500, 1))
    low, value, high = found.advantage.low, found.advantage.value, found.advantage.high
    assert low is not None and high is not None and value is not None
    assert low < value < high
    # about 2 * 1.96 standard errors of a mean of 80 shares: at most 4 * sqrt(.25 / 80) = .22
    assert 0.03 < high - low < 0.25
