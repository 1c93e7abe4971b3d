"""Biases: by hand, against a regression, and found only where they were planted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from rejoinder.meta_evaluation.annotators import Resampling
from rejoinder.meta_evaluation.correlate import Estimate
from rejoinder.trust.bias import length_bias, middle_bias, own_bias
from rejoinder.trust.position import OrderedAnswer, position_bias

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NONE = Resampling(0)
SOME = Resampling(200, 7)


def contains(estimate: Estimate, value: float) -> bool:
    assert estimate.low is not None and estimate.high is not None
    return estimate.low <= value <= estimate.high


def replies(seed: int, contexts: int = 80, each: int = 4) -> tuple[Floats, Floats, Ints, Floats]:
    """Return people's ratings, lengths, the contexts, and noise; nothing depends on anything."""
    rng = np.random.default_rng(seed)
    n = contexts * each
    where = np.repeat(np.arange(contexts, dtype=np.int64), each)
    return rng.normal(3, 1, n), rng.integers(5, 80, n).astype(float), where, rng.normal(0, 1, n)


def test_length_bias_by_hand() -> None:
    # r = 1 - 6 Σ d² / (4 * 15) of ranks d apart; score 1 2 3 4, length 2 1 4 3, rating 1 3 2 4:
    # score and length 1+1+1+1 = 4 → .6, score and rating 0+1+1+0 = 2 → .8,
    # length and rating 1+4+4+1 = 10 → 0:  (.6 - .8 * 0) / sqrt((1 - .64)(1 - 0)) = 1
    score, contexts = np.array([1.0, 2, 3, 4]), np.arange(4)
    length, rating = np.array([20.0, 10, 40, 30]), np.array([1.0, 3, 2, 4])
    assert length_bias(score, length, rating, contexts, NONE).value == pytest.approx(1.0)
    # length 3 1 4 2, rating 1 2 4 3: score and length 4+1+1+4 = 10 → 0, score and rating
    # 0+0+1+1 = 2 → .8, length and rating 4+1+0+1 = 6 → .4:  -.32 / sqrt(.36 * .84) = -.5819
    length, rating = np.array([3.0, 1, 4, 2]), np.array([1.0, 2, 4, 3])
    found = length_bias(score, length, rating, contexts, NONE)
    assert found.value == pytest.approx(-0.5819, abs=1e-4)


def test_length_bias_is_the_correlation_of_what_the_rating_leaves_over() -> None:
    human, lengths, contexts, noise = replies(1)
    scores = human + noise + 0.02 * lengths
    ranks = [stats.rankdata(each) for each in (scores, lengths, human)]
    left = [r - np.polyval(np.polyfit(ranks[2], r, 1), ranks[2]) for r in ranks[:2]]
    expected = np.corrcoef(left)[0, 1]
    found = length_bias(scores, lengths, human, contexts, SOME)
    assert found.value == pytest.approx(expected)
    assert contains(found, expected)


def test_a_planted_bias_for_length_is_found_and_none_where_there_is_none() -> None:
    planted, false = 0, 0
    for seed in range(15):
        human, lengths, contexts, noise = replies(seed)
        with_bias = length_bias(human + noise + 0.02 * lengths, lengths, human, contexts, SOME)
        without = length_bias(human + noise, lengths, human, contexts, SOME)
        planted += not contains(with_bias, 0)
        false += not contains(without, 0)
    assert planted == 15
    assert false <= 4  # .75 expected


def test_good_long_replies_are_no_bias() -> None:
    """The score follows people, who like long replies: nothing is left over."""
    human, lengths, contexts, noise = replies(3)
    liked = human + 0.05 * lengths
    found = length_bias(liked + 0.5 * noise, lengths, liked, contexts, SOME)
    assert contains(found, 0)
    assert (stats.spearmanr(liked, lengths).statistic) > 0.5


@pytest.mark.parametrize("constant", ["scores", "lengths", "human"])
def test_constant_columns_have_no_length_bias(constant: str) -> None:
    human, lengths, contexts, noise = replies(3)
    columns = {"scores": noise, "lengths": lengths, "human": human}
    columns[constant] = np.ones(len(human))
    found = length_bias(columns["scores"], columns["lengths"], columns["human"], contexts, SOME)
    assert found == Estimate()


def test_own_bias_by_hand() -> None:
    # ratings 1 2 3 for own and other replies alike; other replies score as rated, own ones 1 more:
    # d = 1; variance of the scores 1 2 3 2 3 4, twice: mean 2.5, squares
    # 2.25 + .25 + .25 + .25 + .25 + 2.25 = 5.5 over 6 → standard deviation sqrt(5.5 / 6) = .9574
    human = np.tile([1.0, 2, 3], 4)
    own = np.repeat([False, True], 6)
    found = own_bias(human + own, own, human, np.arange(12), NONE, ["x"])
    assert found is not None
    assert (found.own, found.others, found.systems) == (6, 6, ["x"])
    assert found.difference.value == pytest.approx(1 / math.sqrt(5.5 / 6))


def test_own_bias_is_the_coefficient_of_a_regression() -> None:
    human, _, contexts, noise = replies(5)
    own = np.arange(len(human)) % 4 == 0
    scores = 0.7 * human + 0.4 * own + noise
    table = np.array([np.ones(len(human)), human, own]).T
    (_, _, d), *_ = np.linalg.lstsq(table, scores, rcond=None)
    found = own_bias(scores, own, human, contexts, SOME, ["x"])
    assert found is not None
    assert found.difference.value == pytest.approx(d / scores.std())
    assert contains(found.difference, d / scores.std())


def test_own_replies_that_people_like_are_no_bias() -> None:
    planted, false = 0, 0
    for seed in range(15):
        human, _, contexts, noise = replies(seed)
        own = np.arange(len(human)) % 4 == 0
        human = human + own  # people like them better, too
        for bias in (0.0, 0.6):
            found = own_bias(human + bias * own + 0.5 * noise, own, human, contexts, SOME, ["x"])
            assert found is not None
            if bias:
                planted += not contains(found.difference, 0)
            else:
                false += not contains(found.difference, 0)
    assert planted == 15
    assert false <= 4


def test_ratings_that_are_all_the_same_take_nothing_out() -> None:
    own = np.repeat([False, True], 5)
    found = own_bias(np.arange(10.0), own, np.full(10, 3.0), np.arange(10), NONE, ["x"])
    assert found is not None
    # means 2 and 7, standard deviation of 0 … 9 is sqrt(99 / 12)
    assert found.difference.value == pytest.approx(5 / math.sqrt(99 / 12))


@pytest.mark.parametrize("high", [4.0, 4.1])
def test_ratings_that_tell_whose_a_reply_is_leave_no_own_bias(high: float) -> None:
    # all replies of its own are rated high, all others 1.3: no two have the same rating
    own = np.repeat([False, True], [7, 6])
    scores = np.random.default_rng(1).normal(size=13) + own
    human = np.where(own, high, 1.3)
    found = own_bias(scores, own, human, np.arange(13), SOME, ["x"])
    assert found is not None
    assert found.difference == Estimate()


def test_too_few_own_replies_tell_nothing() -> None:
    own = np.arange(20) < 4
    assert own_bias(np.arange(20.0), own, np.arange(20.0), np.arange(20), NONE, ["x"]) is None


def test_middle_bias_by_hand() -> None:
    # scale 1-5: middle 3, half 2. Scores 2 3 4 5: distances .5 0 .5 1, mean .5.
    # people on 0-4 (middle 2): means 0 1 3 4: 1 .5 .5 1, mean .75; ratio 2/3.
    # single ratings (0, 0), (0, 2), (2, 4), (4, 4): 1, .5, .5, 1: mean .75
    found = middle_bias(
        np.array([2.0, 3, 4, 5]),
        (1, 5),
        np.array([0.0, 1, 3, 4]),
        [[0, 0], [0, 2], [2, 4], [4, 4]],
        (0, 4),
        np.arange(4),
        NONE,
    )
    assert found is not None
    assert (found.judge, found.people, found.single) == (0.5, 0.75, 0.75)
    assert found.ratio.value == pytest.approx(2 / 3)


def test_a_judge_who_keeps_to_the_middle_is_found() -> None:
    shy, frank = 0, 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        human = rng.integers(1, 6, 200).astype(float)
        contexts = np.repeat(np.arange(50), 4)
        single = [[rating] for rating in human]
        shuffled = rng.permutation(human)  # no agreement at all, but the same use of the scale
        for scores in (3 + (human - 3) / 2, shuffled):
            found = middle_bias(scores, (1, 5), human, single, (1, 5), contexts, SOME)
            assert found is not None
            if scores is shuffled:
                frank += not contains(found.ratio, 1)
            else:
                shy += not contains(found.ratio, 1)
    assert (shy, frank) == (15, 0)


def test_people_who_are_always_in_the_middle_are_no_measure() -> None:
    middle = np.full(4, 3.0)
    found = middle_bias(np.arange(4.0), (0, 4), middle, [[3.0]] * 4, (1, 5), np.arange(4), NONE)
    assert found is None


def answer(first: str, second: str, number: int = 0) -> OrderedAnswer:
    return OrderedAnswer("x", f"y{number}", "j", f"c{number}", (first, second))  # type: ignore[arg-type]


def test_position_bias_by_hand() -> None:
    # a, a: the same reply; a, b: first place twice; b, a: second twice; tie, a: half + second
    # shares of first: 1/2, 2/2, 0/2, .5/2 → (1 + 2 + 0 + .5) / 8
    answers = [answer("a", "a"), answer("a", "b"), answer("b", "a"), answer("tie", "a")]
    (found,) = position_bias(answers, NONE)
    assert (found.judge, found.pairs) == ("j", 4)
    assert (found.consistent, found.first, found.second) == (1, 1, 1)
    assert found.share_first.value == pytest.approx(3.5 / 8)


def test_a_judge_who_always_takes_the_first_is_found_and_one_who_reads_is_not() -> None:
    always = [answer("a", "b", n) for n in range(40)]
    (found,) = position_bias(always, SOME)
    assert (found.first, found.consistent, found.share_first.value) == (40, 0, 1.0)
    rng = np.random.default_rng(4)
    reads = [answer(first, first, n) for n, first in enumerate(rng.choice(["a", "b"], 40))]
    (found,) = position_bias(reads, SOME)
    assert found.share_first.value == 0.5
    assert contains(found.share_first, 0.5)


def test_answers_of_people_have_no_orders_and_judges_are_told_apart() -> None:
    person = OrderedAnswer("x", "y", "ann")
    other = OrderedAnswer("x", "y", "k", "c", ("a", "b"))
    assert [each.judge for each in position_bias([person, answer("a", "a"), other], NONE)] == [
        "j",
        "k",
    ]
