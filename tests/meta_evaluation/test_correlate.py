import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from rejoinder.meta_evaluation import correlate as module
from rejoinder.meta_evaluation.correlate import (
    STATISTICS,
    Columns,
    Estimate,
    bootstrap,
    correlate,
    correlate_many,
    draw_counts,
    percentiles,
    weighted,
)

PLAIN = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}

tied = st.integers(-3, 3).map(float)
continuous = st.floats(-1e3, 1e3).map(lambda x: round(x, 3))
points = st.lists(st.tuples(tied | continuous, tied), min_size=3, max_size=40)


def noisy(n: int, seed: int = 0, strength: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    human = rng.integers(1, 6, n).astype(float)
    return strength * human + rng.normal(size=n), human


def one_resample(statistic: str, counts: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    row = np.asarray(counts, np.int32)[np.newaxis]
    return weighted(statistic, row, Columns.of(x[np.newaxis]), Columns.of(y[np.newaxis]))[0, 0]


@given(points)
@pytest.mark.filterwarnings("ignore:An input array is (nearly )?constant")
def test_value_and_p_are_scipys(pairs):
    x, y = np.array(pairs).T
    found = correlate(x, y, resamples=0)
    for statistic in STATISTICS:
        expected = PLAIN[statistic](x, y)
        estimate = getattr(found, statistic)
        if np.unique(x).size < 2 or np.unique(y).size < 2:
            assert estimate == Estimate(None, None, None, None)
        else:
            assert estimate.value == pytest.approx(expected.statistic, abs=1e-9)
            assert estimate.p == pytest.approx(expected.pvalue, abs=1e-9)


def test_kendall_p_is_exact_when_few_and_untied_and_normal_when_many():
    # 4 items, all 6 pairs concordant: 2 of 4! = 24 orders are as extreme, p = 2 / 24.
    assert correlate([1, 2, 3, 4], [1, 2, 3, 4]).kendall.p == pytest.approx(2 / 24)
    x, y = noisy(60)
    found = correlate(x, y, resamples=0).kendall
    assert found.p == pytest.approx(stats.kendalltau(x, y, method="asymptotic").pvalue, rel=1e-12)


def test_values_by_hand():
    found = correlate([1, 2, 3, 4], [1, 3, 2, 2], resamples=0)
    # x - 2.5 = -1.5 -.5 .5 1.5; y - 2 = -1 1 0 0: sum of products 1, squares 5 and 2: 1/sqrt(10)
    assert found.pearson.value == pytest.approx(1 / math.sqrt(10))
    # ranks of y: 1 4 2.5 2.5, less 2.5: -1.5 1.5 0 0; products 1.5; squares 5 and 4.5
    assert found.spearman.value == pytest.approx(1.5 / math.sqrt(5 * 4.5))
    # y pairs: (1,3)+ (1,2)+ (1,2)+ (3,2)- (3,2)- (2,2)=: 3 - 2 of 6, one tie: 1/sqrt(6 * 5)
    assert found.kendall.value == pytest.approx(1 / math.sqrt(30))
    assert found.n == 4


@settings(max_examples=300)
@given(points, st.data())
def test_weighted_statistic_is_the_plain_one_on_repeated_items(pairs, data):
    x, y = np.array(pairs).T
    counts = np.array(data.draw(st.lists(st.integers(0, 4), min_size=len(x), max_size=len(x))))
    assume(counts.sum() >= 3)
    repeated = np.repeat(x, counts), np.repeat(y, counts)
    for statistic in STATISTICS:
        value = one_resample(statistic, counts, x, y)
        if min(np.unique(values).size for values in repeated) < 2:
            assert math.isnan(value)
        else:
            assert value == pytest.approx(PLAIN[statistic](*repeated).statistic, abs=1e-12)


def test_resampled_pearson_survives_an_outlier_that_was_not_drawn():
    rng = np.random.default_rng(4)
    y = rng.normal(size=50)
    x = y + rng.normal(size=50)
    expected = stats.pearsonr(x[1:], y[1:]).statistic
    x[0] = 1e9
    counts = np.ones(50, int)
    counts[0] = 0
    assert one_resample("pearson", counts, x, y) == pytest.approx(expected, abs=1e-12)


def test_constant_resample_is_undefined_even_when_its_mean_is_rounded():
    for n in range(3, 60):
        x = np.append(np.full(n, 0.1), 0.7)
        y = np.arange(n + 1.0)
        counts = np.append(np.ones(n), 0)
        for statistic in STATISTICS:
            assert math.isnan(one_resample(statistic, counts, x, y))
            assert math.isnan(one_resample(statistic, counts, y, x))


@pytest.mark.parametrize("scale", [1e-300, 1e300, 5e-324 * 2**10])
def test_huge_and_tiny_values_neither_overflow_nor_vanish(scale):
    x, y = noisy(30)
    x = np.round(x * 100)
    expected, found = correlate(x, y), correlate(x / 1e4 * 1e4 * scale, y)
    assert found.pearson.value == pytest.approx(expected.pearson.value, abs=1e-12)
    assert found.pearson.low == pytest.approx(expected.pearson.low, abs=1e-12)


def test_large_n_does_not_overflow_whole_numbers():
    rng = np.random.default_rng(1)
    x = rng.normal(size=200_000)
    y = np.round(x + rng.normal(size=x.size))
    for statistic in STATISTICS:
        value = one_resample(statistic, np.ones(x.size), x, y)
        assert value == pytest.approx(PLAIN[statistic](x, y).statistic, abs=1e-12)


@given(points, st.randoms(use_true_random=False))
def test_order_of_items_is_irrelevant(pairs, random):
    shuffled = list(pairs)
    random.shuffle(shuffled)
    first = correlate(*np.array(pairs).T, resamples=0)
    second = correlate(*np.array(shuffled).T, resamples=0)
    for statistic in STATISTICS:
        one, other = getattr(first, statistic), getattr(second, statistic)
        assert (one.value is None) == (other.value is None)
        if one.value is not None:
            assert one.value == pytest.approx(other.value, abs=1e-12)


def test_monotone_transforms_leave_the_rank_correlations_and_their_intervals_alone():
    x, y = noisy(80)
    plain, bent = correlate(x, y), correlate(np.exp(x), y**3)
    assert bent.spearman == plain.spearman
    assert bent.kendall == plain.kendall
    assert bent.pearson.value != pytest.approx(plain.pearson.value, abs=1e-3)
    affine = correlate(3 * x + 7, y)
    assert affine.pearson.low == pytest.approx(plain.pearson.low)


def test_a_reversed_metric_mirrors_everything():
    x, y = noisy(50)
    up, down = correlate(x, y), correlate(-x, y)
    for statistic in STATISTICS:
        one, other = getattr(up, statistic), getattr(down, statistic)
        assert (other.value, other.low, other.high) == pytest.approx(
            (-one.value, -one.high, -one.low), abs=1e-12
        )


def test_the_interval_is_the_percentiles_of_explicit_resamples():
    x, y = noisy(25)
    drawn = np.random.default_rng(7).integers(0, 25, (200, 25))
    found = correlate(x, y, resamples=200, seed=7, confidence=0.8)
    for statistic in STATISTICS:
        values = [PLAIN[statistic](x[row], y[row]).statistic for row in drawn]
        expected = np.quantile(values, [0.1, 0.9])
        estimate = getattr(found, statistic)
        assert (estimate.low, estimate.high) == pytest.approx(tuple(expected), abs=1e-12)


def test_same_seed_same_result_and_other_seed_other_interval():
    x, y = noisy(40)
    assert correlate(x, y, seed=1) == correlate(x, y, seed=1)
    assert correlate(x, y, seed=1) == correlate(x, y, seed=np.random.default_rng(1))
    assert correlate(x, y, seed=1).pearson.low != correlate(x, y, seed=2).pearson.low


def test_many_columns_share_their_resamples():
    x, y = noisy(40)
    z, _ = noisy(40, seed=9)
    assert correlate_many([x, z], y) == [correlate(x, y), correlate(z, y)]
    assert correlate_many(np.empty((0, 40)), y) == []


def test_chunks_do_not_change_what_is_drawn(monkeypatch):
    x, y = noisy(33)
    whole = bootstrap([x], y, resamples=50)
    monkeypatch.setattr(module, "CHUNK_BYTES", 5000)
    sizes = [len(chunk) for chunk in draw_counts(np.random.default_rng(0), 33, 50)]
    assert len(sizes) > 3 and sum(sizes) == 50
    chunked = bootstrap([x], y, resamples=50)
    for statistic in STATISTICS:
        np.testing.assert_array_equal(whole[statistic], chunked[statistic])


def test_drawn_counts_are_a_bootstrap():
    counts = np.concatenate(list(draw_counts(np.random.default_rng(0), 20, 4000)))
    assert (counts.sum(axis=1) == 20).all()
    # each count is binomial(20, 1/20): mean 1, variance 20 * 1/20 * 19/20 = 0.95
    assert counts.mean(axis=0) == pytest.approx(np.ones(20), abs=0.08)
    assert counts.var() == pytest.approx(0.95, abs=0.03)


def test_clusters_are_drawn_whole():
    x, y = noisy(12)
    clusters = np.array([7, 7, 7, -1, -1, 40, 40, 40, 40, 5, 5, 5])
    members = [np.flatnonzero(clusters == label) for label in np.unique(clusters)]
    drawn = np.random.default_rng(3).integers(0, 4, (60, 4))
    found = bootstrap([x], y, clusters=clusters, resamples=60, seed=3)
    for resample, chosen in enumerate(drawn):
        items = np.concatenate([members[cluster] for cluster in chosen])
        for statistic in STATISTICS:
            expected = PLAIN[statistic](x[items], y[items]).statistic
            assert found[statistic][0, resample] == pytest.approx(expected, abs=1e-12)


def test_items_that_repeat_within_a_cluster_do_not_narrow_the_interval():
    x, y = noisy(60)
    repeated = np.repeat(x, 10), np.repeat(y, 10)
    alone = correlate(x, y)
    clustered = correlate(*repeated, clusters=np.repeat(np.arange(60), 10))
    naive = correlate(*repeated)
    width = alone.pearson.high - alone.pearson.low
    assert clustered.pearson.high - clustered.pearson.low == pytest.approx(width, rel=1e-9)
    assert naive.pearson.high - naive.pearson.low < width / 2


def test_the_interval_covers_the_true_correlation_about_as_often_as_it_says():
    rng = np.random.default_rng(11)
    rho, covered = 0.5, 0
    for trial in range(200):
        human = rng.normal(size=100)
        metric = rho * human + math.sqrt(1 - rho**2) * rng.normal(size=100)
        estimate = correlate(metric, human, resamples=300, seed=trial, confidence=0.9).pearson
        covered += estimate.low <= rho <= estimate.high
    # 200 trials at 90 %: standard error 2.1 points; the percentile method is a little too narrow
    assert 0.83 <= covered / 200 <= 0.95


def test_p_is_uniform_when_there_is_nothing():
    rng = np.random.default_rng(5)
    found = correlate_many(rng.normal(size=(400, 50)), rng.normal(size=50), resamples=0)
    for statistic in STATISTICS:
        values = [getattr(one, statistic).p for one in found]
        assert stats.kstest(values, "uniform").pvalue > 0.01


@pytest.mark.parametrize("n", [0, 1, 2])
def test_too_few_items_are_undefined(n):
    found = correlate(np.arange(n), np.arange(n))
    assert found.n == n
    assert found.pearson == found.spearman == found.kendall == Estimate()


def test_constants_are_undefined_not_zero():
    x = np.arange(10.0)
    for found in (correlate(x, np.full(10, 0.1)), correlate(np.full(10, 0.1), x)):
        assert found.pearson == found.spearman == found.kendall == Estimate()


def test_one_constant_column_does_not_disturb_its_neighbours():
    x, y = noisy(20)
    found = correlate_many([np.ones(20), x], y)
    assert found[0].kendall == Estimate()
    assert found[1] == correlate(x, y)


def test_degenerate_resamples_are_left_out_of_the_interval():
    # Nine equal scores and one other: a resample without the other, 0.9^10 = 35 %, is constant.
    x = np.array([0.0] * 9 + [1.0])
    y = np.arange(10.0)
    drawn = bootstrap([x], y, resamples=2000)["pearson"][0]
    assert np.isnan(drawn).mean() == pytest.approx(0.9**10, abs=0.04)
    estimate = correlate(x, y, resamples=2000).pearson
    assert estimate.low == pytest.approx(np.nanquantile(drawn, 0.025))


def test_no_interval_if_most_resamples_are_degenerate():
    # Three clusters, only one of which varies: absent from (2/3)^3 = 30 % of the resamples: fine.
    # Two clusters, of which both are needed for the people to vary: absent half the time or more.
    x = np.arange(6.0)
    assert correlate(x, [1, 1, 1, 1, 1, 2], clusters=[0, 0, 1, 1, 2, 2]).pearson.low is not None
    drawn = bootstrap([x], [0, 0, 0, 1, 1, 1], clusters=[0, 0, 0, 1, 1, 1], seed=2)["pearson"]
    assert np.isnan(drawn).mean() > 0.5
    estimate = correlate(x, [0, 0, 0, 1, 1, 1], clusters=[0, 0, 0, 1, 1, 1], seed=2).pearson
    assert estimate.value is not None and estimate.low is None and estimate.high is None


def test_percentiles_by_hand():
    # 0 1 … 100: the central 90 % runs from 5 to 95; as many NaN as values is still allowed
    drawn = np.append(np.arange(101.0), np.full(101, math.nan))
    assert percentiles(drawn, 0.9) == pytest.approx((5, 95))
    assert percentiles(np.append(drawn, math.nan), 0.9) == (None, None)
    assert percentiles(np.empty(0)) == (None, None)


def test_one_cluster_or_no_resamples_give_no_interval():
    x, y = noisy(10)
    for found in (correlate(x, y, clusters=np.zeros(10)), correlate(x, y, resamples=0)):
        assert found.pearson.value == pytest.approx(stats.pearsonr(x, y).statistic)
        assert found.pearson.low is None and found.pearson.high is None


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1, 2, 3], [1, 2]), {}, "metric has 3 items but human has 2"),
        (([1, 2, math.nan], [1, 2, 3]), {}, "metric: 1 of 3 values are NaN or infinite"),
        (([1, 2, 3], [1, math.inf, None]), {}, "human: 2 of 3 values are NaN or infinite"),
        (([[1, 2, 3]], [1, 2, 3]), {}, "metric: expected 1 dimension"),
        (([1, 2, 3], [1, 2, 3]), {"clusters": [1, 2]}, "clusters has 2 items but human has 3"),
        (([1, 2, 3], [1, 2, 3]), {"clusters": [[1, 2, 3]]}, "clusters: expected 1 dimension"),
        (([1, 2, 3], [1, 2, 3]), {"resamples": -1}, "resamples must not be negative"),
        (([1, 2, 3], [1, 2, 3]), {"confidence": 95}, "confidence must lie between 0 and 1"),
    ],
)
def test_bad_input_is_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        correlate(*arguments, **options)


def test_an_unknown_statistic_is_refused():
    with pytest.raises(ValueError, match="unknown statistic 'tau'"):
        bootstrap([[1, 2, 3]], [1, 2, 3], statistics=["tau"])


def test_importing_loads_neither_numba_nor_scipy():
    modules = "correlate, significance, agreement, pairwise_accuracy"
    code = (
        f"import sys; from rejoinder.meta_evaluation import {modules}; "
        "sys.exit(bool({'numba', 'scipy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
