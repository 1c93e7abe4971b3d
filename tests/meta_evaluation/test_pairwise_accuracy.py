import math
import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rejoinder.meta_evaluation.pairwise_accuracy import (
    Calibration,
    pairwise_accuracy,
    tie_calibrated,
)

coarse = st.integers(0, 4).map(float)
fine = st.floats(0, 1)
items = st.one_of(
    st.lists(st.tuples(metric, coarse, st.integers(0, 3)), max_size=25)
    for metric in (coarse, fine, coarse | fine)
)


def columns(rows):
    return np.array(rows, dtype=float).reshape(-1, 3).T


def slow_accuracy(metric, human, groups, eps):
    right = total = 0
    for i, j in combinations(range(len(metric)), 2):
        if groups[i] == groups[j]:
            gap = metric[i] - metric[j]
            verdict = 0 if abs(gap) <= eps else np.sign(gap)
            right += verdict == np.sign(human[i] - human[j])
            total += 1
    return right / total if total else None


def test_accuracy_by_hand():
    metric, human = [1, 1, 2, 3], [1, 1, 2, 1]
    # pairs 01 tied for both; 02 concordant; 03 human tie only; 12 concordant; 13 human tie only;
    # 23 discordant: 3 of 6
    assert pairwise_accuracy(metric, human) == pytest.approx(3 / 6)
    # eps 1 ties 01, 02, 12 and 23, of which people tie 01 only; 03 and 13 stay wrong: 1 of 6
    assert pairwise_accuracy(metric, human, eps=1) == pytest.approx(1 / 6)
    # eps 2 ties all: right are the three that people tie
    assert pairwise_accuracy(metric, human, eps=2) == pytest.approx(3 / 6)


def test_calibration_by_hand():
    # gaps .1 (tie), 1 (concordant), .9 (concordant): eps = .1 is right everywhere
    assert tie_calibrated([0.0, 0.1, 1.0], [1, 1, 2]) == Calibration(1.0, 0.1, 3)
    # gaps 1 (tie), 1 (concordant), 2 (concordant): pairs with equal gaps become ties together, so
    # that eps = 1 wins one and loses one
    assert tie_calibrated([0, 1, 2], [1, 1, 2]) == Calibration(2 / 3, 0.0, 3)
    # already right without a threshold: the smallest is 0
    assert tie_calibrated([0.0, 0.5, 1.0], [1, 2, 3]) == Calibration(1.0, 0.0, 3)


@given(items, st.sampled_from([0.0, 0.25, 1.0, 5.0]))
def test_accuracy_is_the_counted_one(rows, eps):
    metric, human, groups = columns(rows)
    expected = slow_accuracy(metric, human, groups, eps)
    found = pairwise_accuracy(metric, human, groups, eps=eps)
    assert found == (None if expected is None else pytest.approx(expected))


@given(items)
def test_calibration_finds_the_best_and_smallest_threshold(rows):
    metric, human, groups = columns(rows)
    found = tie_calibrated(metric, human, groups)
    gaps = {abs(a - b) for a, b in combinations(metric, 2)} | {0.0}
    every = {eps: slow_accuracy(metric, human, groups, eps) for eps in gaps}
    if found.pairs == 0:
        assert found == Calibration(None, None, 0)
        assert set(every.values()) == {None}
        return
    best = max(every.values())
    assert found.accuracy == pytest.approx(best)
    assert found.eps == min(eps for eps, accuracy in every.items() if accuracy == best)
    assert pairwise_accuracy(metric, human, groups, eps=found.eps) == pytest.approx(best)


@given(items, st.integers(0, 1000))
def test_order_and_names_of_groups_are_irrelevant(rows, seed):
    metric, human, groups = columns(rows)
    mixed = np.random.default_rng(seed).permutation(len(metric))
    names = np.array(["d", "a", "c", "b"])[groups.astype(int)]
    found = tie_calibrated(metric, human, groups)
    assert found == tie_calibrated(metric[mixed], human[mixed], names[mixed])


@given(items)
def test_people_agree_with_themselves_and_never_with_their_opposite(rows):
    _, human, groups = columns(rows)
    if (accuracy := pairwise_accuracy(human, human, groups)) is not None:
        assert accuracy == 1.0
        assert tie_calibrated(human, human, groups).eps == 0.0


def test_without_ties_accuracy_is_kendalls_tau():
    rng = np.random.default_rng(0)
    human = rng.permutation(50).astype(float)
    metric = human + 20 * rng.normal(size=50)
    tau = stats.kendalltau(metric, human).statistic
    assert pairwise_accuracy(metric, human) == pytest.approx((tau + 1) / 2)


def test_a_constant_metric_scores_by_the_ties_of_people():
    # 3 of the 6 pairs of 1 1 1 2 are tied
    assert pairwise_accuracy(np.zeros(4), [1, 1, 1, 2]) == pytest.approx(0.5)
    assert tie_calibrated(np.zeros(4), [1, 1, 1, 2]) == Calibration(0.5, 0.0, 6)


def test_one_large_group_among_many_small_ones():
    groups = np.concatenate([np.zeros(1000), np.repeat(np.arange(1, 20_001), 2)])
    values = np.random.default_rng(0).normal(size=groups.size)
    assert tie_calibrated(values, values, groups).pairs == 1000 * 999 // 2 + 20_000


def test_a_huge_group_takes_the_memory_of_its_items():
    values = np.random.default_rng(0).normal(size=4000)  # 8 million pairs, 64 MB of gaps
    tracemalloc.start()
    accuracy = pairwise_accuracy(values, values)
    calibration = tie_calibrated(values, values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert accuracy == 1.0
    assert calibration == Calibration(None, None, 4000 * 3999 // 2)
    # what is kept until there are too many: 5 million pairs at 9 bytes
    assert peak < 60 * 2**20


def test_no_pairs():
    for arguments in ([], []), ([1], [1]), ([1, 2], [1, 2], [0, 1]):
        assert pairwise_accuracy(*arguments) is None
        assert tie_calibrated(*arguments) == Calibration(None, None, 0)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1, 2], [1]), {}, "metric has 2 items but human has 1"),
        (([1, 2], [1, 2], [1]), {}, "groups has 1 items but human has 2"),
        (([1, math.nan], [1, 2]), {}, "metric: 1 of 2 values are NaN"),
        (([1, 2], [1, 2], [[1, 2]]), {}, "groups: expected 1 dimension"),
        (([1, 2], [1, 2]), {"eps": -0.1}, "eps must not be negative"),
        (([1, 2], [1, 2]), {"eps": math.nan}, "eps must not be negative"),
    ],
)
def test_bad_input_is_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        pairwise_accuracy(*arguments, **options)
