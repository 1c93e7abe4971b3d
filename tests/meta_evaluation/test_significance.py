import math
import tracemalloc
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from rejoinder.meta_evaluation import correlate as limits
from rejoinder.meta_evaluation.correlate import STATISTICS
from rejoinder.meta_evaluation.significance import (
    Comparison,
    approximate_randomisation,
    holm,
    letters,
    paired_bootstrap,
    perm_both,
    random_sign_tail,
    williams,
)

PLAIN = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


def two_metrics(n: int, seed: int, good: float = 1.0, bad: float = 1.0):
    rng = np.random.default_rng(seed)
    human = rng.integers(1, 6, n).astype(float)
    return good * human + rng.normal(size=n), bad * human + rng.normal(size=n), human


def mean(sums: np.ndarray) -> np.ndarray:
    return sums[..., 0] / sums[..., 1]


def rows(values: np.ndarray) -> np.ndarray:
    return np.stack([values, np.ones_like(values)], axis=-1)


# perm_both


@pytest.mark.parametrize("statistic", STATISTICS)
def test_perm_both_equals_explicit_swapping(statistic):
    a, b, human = two_metrics(30, seed=1, good=0.5, bad=0.2)
    a = np.round(a)  # ties
    za, zb = stats.zscore(a), stats.zscore(b)
    swaps = np.random.default_rng(6).random((100, 30)) < 0.5

    def gap(x, y):
        return PLAIN[statistic](x, human).statistic - PLAIN[statistic](y, human).statistic

    drawn = np.array([gap(np.where(s, zb, za), np.where(s, za, zb)) for s in swaps])
    for alternative, hits in [
        ("greater", drawn >= gap(a, b) - 1e-12),
        ("less", drawn <= gap(a, b) + 1e-12),
        ("two-sided", np.abs(drawn) >= abs(gap(a, b)) - 1e-12),
    ]:
        found = perm_both(
            a, b, human, statistic=statistic, resamples=100, seed=6, alternative=alternative
        )
        assert found.difference == pytest.approx(gap(a, b), abs=1e-12)
        assert found.p == pytest.approx((1 + hits.sum()) / 101)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_perm_both_sees_a_clear_difference_and_its_direction(statistic):
    a, b, human = two_metrics(200, seed=2, good=1.0, bad=0.1)
    assert perm_both(a, b, human, statistic=statistic, resamples=199).p < 1 / 200
    assert perm_both(b, a, human, statistic=statistic, resamples=199).p == 1.0
    less = perm_both(b, a, human, statistic=statistic, resamples=199, alternative="less")
    assert less.p < 1 / 200


def test_perm_both_is_uniform_when_the_metrics_are_equally_good():
    values = []
    for trial in range(200):
        a, b, human = two_metrics(40, seed=trial, good=0.4, bad=0.4)
        values.append(perm_both(a, b, human, resamples=99, seed=trial).p)
    assert stats.kstest(values, "uniform").pvalue > 0.01


@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_metric_on_another_scale_is_no_better(statistic):
    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, 50) / 3
    found = perm_both(a, 100 * a + 7, a + rng.normal(size=50), statistic=statistic)
    assert found.difference == pytest.approx(0, abs=1e-12)
    assert found.p == 1.0


def test_perm_both_survives_huge_values():
    a, b, human = two_metrics(40, seed=3)
    plain = perm_both(a, b, human)
    assert perm_both(a * 1e300, b * 1e-300, human).p == plain.p


def test_perm_both_is_repeatable_and_chunks_do_not_matter(monkeypatch):
    a, b, human = two_metrics(40, seed=4, bad=0.7)
    first = perm_both(a, b, human, seed=1)
    assert first == perm_both(a, b, human, seed=1)
    monkeypatch.setattr(limits, "CHUNK_BYTES", 9999)
    assert first == perm_both(a, b, human, seed=1)


def test_perm_both_undefined():
    x = np.arange(5.0)
    nothing = Comparison(None, None)
    assert perm_both(np.ones(5), x, x) == perm_both(x, np.ones(5), x) == nothing
    assert perm_both(x, x, np.ones(5)) == perm_both(x[:2], x[:2], x[:2]) == nothing
    assert perm_both([], [], []) == nothing


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": [1, 2]}, "a has 2 items but human has 3"),
        ({"b": [1, 2]}, "b has 2 items but human has 3"),
        ({"human": [1, math.nan, 2]}, "human: 1 of 3 values are NaN"),
        ({"resamples": 0}, "resamples must be at least 1"),
        ({"statistic": "tau"}, "unknown statistic 'tau'"),
        ({"alternative": "better"}, "unknown alternative 'better'"),
    ],
)
def test_perm_both_refuses(change, message):
    with pytest.raises(ValueError, match=message):
        perm_both(**{"a": [1, 2, 4], "b": [1, 3, 2], "human": [1, 2, 3], **change})


# williams


def test_williams_by_hand():
    # r_ah = .6, r_bh = .4, r_ab = .5, n = 103:
    # K = 1 - .36 - .16 - .25 + 2 * .6 * .4 * .5 = .47
    # t = .2 sqrt(102 * 1.5) / sqrt(2 * .47 * 102 / 100 + .25 * 1 * .125) = 2.47386 / .99501
    t = 0.2 * math.sqrt(153) / math.sqrt(0.9588 + 0.03125)
    assert williams(0.6, 0.4, 0.5, 103) == pytest.approx(stats.t.sf(t, 100), rel=1e-12)


@given(st.integers(4, 60), st.integers(0, 10**6))
def test_williams_is_a_probability_and_antisymmetric(n, seed):
    table = np.corrcoef(np.random.default_rng(seed).normal(size=(3, n)))
    there = williams(table[0, 2], table[1, 2], table[0, 1], n)
    back = williams(table[1, 2], table[0, 2], table[0, 1], n)
    assert there is not None and back is not None
    assert 0 <= there <= 1
    assert there + back == pytest.approx(1)


def test_williams_is_uniform_when_the_metrics_are_equally_good():
    rng = np.random.default_rng(8)
    values = []
    for _ in range(400):
        human = rng.normal(size=60)
        a, b = 0.5 * human + rng.normal(size=(2, 60))
        r = np.corrcoef([a, b, human])
        values.append(williams(r[0, 2], r[1, 2], r[0, 1], 60))
    assert stats.kstest(values, "uniform").pvalue > 0.01


def test_williams_at_the_edges():
    assert williams(0.5, 0.5, 1.0, 50) == 0.5
    assert williams(0.5, -0.5, -1.0, 50) is None
    assert williams(None, 0.5, 0.5, 50) is None
    assert williams(0.5, math.nan, 0.5, 50) is None
    assert williams(0.5, 0.4, 0.5, 3) is None
    # K = 1 - 3/4 - 1/4 = 0 and r_ah + r_bh = 0: no spread at all, t is infinite
    assert williams(0.5, -0.5, 0.5, 50) == 0.0
    assert williams(-0.5, 0.5, 0.5, 50) == 1.0
    with pytest.raises(ValueError, match="no three variables"):
        williams(0.9, -0.9, 0.9, 50)
    with pytest.raises(ValueError, match=r"must lie in \[-1, 1\]"):
        williams(1.5, 0.4, 0.5, 50)


# paired_bootstrap


def test_paired_bootstrap_equals_explicit_resampling():
    scores = np.random.default_rng(0).random((3, 20))
    drawn = np.random.default_rng(9).integers(0, 20, (50, 20))
    expected = np.array([scores[:, row].mean(axis=1) for row in drawn])
    found = paired_bootstrap(rows(scores), mean, resamples=50, seed=9)
    assert found.shape == (50, 3)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_paired_bootstrap_gives_every_system_the_same_contexts():
    scores = np.random.default_rng(0).random(30)
    found = paired_bootstrap(rows(np.stack([scores, scores + 1])), mean, resamples=100)
    np.testing.assert_allclose(found[:, 1] - found[:, 0], 1.0)
    assert found[:, 0].std() == pytest.approx(scores.std() / math.sqrt(30), rel=0.25)


def test_paired_bootstrap_stays_within_its_memory():
    table = np.random.default_rng(0).random((4, 5000, 3))
    paired_bootstrap(table, lambda sums: sums[..., 0], resamples=2)
    tracemalloc.start()
    paired_bootstrap(table, lambda sums: sums[..., 0], resamples=4000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 80 * 2**20  # all at once would be 4000 * 5000 * 8 bytes = 160 MB for the counts


def test_paired_bootstrap_chunks_do_not_matter(monkeypatch):
    table = rows(np.random.default_rng(0).integers(0, 9, (2, 25)).astype(float))
    whole = paired_bootstrap(table, mean, resamples=40)
    monkeypatch.setattr(limits, "CHUNK_BYTES", 3000)
    np.testing.assert_array_equal(whole, paired_bootstrap(table, mean, resamples=40))


@pytest.mark.parametrize(
    ("table", "resamples", "message"),
    [
        (np.ones((2, 3)), 10, "rows: expected 3 dimension"),
        (np.ones((2, 0, 2)), 10, "no contexts"),
        (np.full((2, 3, 2), math.nan), 10, "rows: 12 of 12 values are NaN"),
        (np.ones((2, 3, 2)), 0, "resamples must be at least 1"),
    ],
)
def test_paired_bootstrap_refuses(table, resamples, message):
    with pytest.raises(ValueError, match=message):
        paired_bootstrap(table, mean, resamples=resamples)


# approximate_randomisation


def test_approximate_randomisation_approaches_the_exact_p():
    # a is better in each of 6 contexts by 1: only swapping none or all, 2 of 64, is as extreme.
    a, b = np.arange(6.0) + 1, np.arange(6.0)
    p = approximate_randomisation(rows(a), rows(b), mean, resamples=20_000)
    assert p == pytest.approx(2 / 64, abs=0.004)


def test_p_below_the_number_of_swaps_is_that_of_a_normal_tail():
    # a is better in each of 25 contexts by 1: 2 of 33,554,432 swaps are as extreme, and none of
    # 5,000 drawn ones. A sum of 25 signs has the deviation 5, and 2 · 3.179 · P(Z >= 25 / 5) is
    # 1.82e-6. The drawn deviation errs by 1 %, hence p by 5² · 1 %; two such errors are allowed.
    a, b = np.arange(25.0) + 1, np.arange(25.0)
    p = approximate_randomisation(rows(a), rows(b), mean, resamples=5000)
    assert p == pytest.approx(1.82e-6, rel=0.5)


@given(arrays(float, st.integers(1, 10), elements=st.floats(0.01, 100)))
def test_the_normal_tail_is_an_upper_bound_for_all_sums_of_random_signs(terms):
    signs = np.array(list(product((-1, 1), repeat=len(terms))))
    sums = np.sort(signs @ terms)
    reached = 1 - np.searchsorted(sums, sums - 1e-9) / len(sums)
    bound = random_sign_tail(sums / np.sqrt(np.square(terms).sum()))
    assert (reached <= bound + 1e-12).all()


def test_a_p_value_is_never_zero():
    a, b = np.full(10_000, 1.0), np.zeros(10_000)
    assert 0 < approximate_randomisation(rows(a), rows(b), mean, resamples=50) < 1e-200


def test_approximate_randomisation_equals_explicit_swapping_of_a_ratio():
    rng = np.random.default_rng(3)
    a, b = rng.random((15, 2)) + 0.2, rng.random((15, 2))
    swaps = np.random.default_rng(5).random((200, 15)) < 0.5

    def gap(x, y):
        return abs(mean(x.sum(axis=0)) - mean(y.sum(axis=0)))

    hits = sum(
        gap(np.where(s[:, None], b, a), np.where(s[:, None], a, b)) >= gap(a, b) - 1e-12
        for s in swaps
    )
    p = approximate_randomisation(a, b, mean, resamples=200, seed=5)
    assert p == pytest.approx((1 + hits) / 201)


def test_equal_systems_have_p_one_despite_rounding():
    a = np.random.default_rng(0).random(1000) / 3
    assert approximate_randomisation(rows(a), rows(a), mean) == 1.0
    # The same scores in other contexts: no swap can bring less difference than none.
    assert approximate_randomisation(rows(a), rows(a[::-1]), mean) == 1.0


def test_approximate_randomisation_is_uniform_under_the_null():
    rng = np.random.default_rng(1)
    values = [
        approximate_randomisation(
            rows(rng.normal(size=30)), rows(rng.normal(size=30)), mean, resamples=99, seed=trial
        )
        for trial in range(300)
    ]
    assert stats.kstest(values, "uniform").pvalue > 0.01


def test_approximate_randomisation_is_symmetric_repeatable_and_chunked(monkeypatch):
    rng = np.random.default_rng(2)
    a, b = rows(rng.random(40) + 0.1), rows(rng.random(40))
    p = approximate_randomisation(a, b, mean)
    assert p == approximate_randomisation(b, a, mean) == approximate_randomisation(a, b, mean)
    monkeypatch.setattr(limits, "CHUNK_BYTES", 5000)
    assert p == approximate_randomisation(a, b, mean)


def test_approximate_randomisation_undefined_and_refused():
    def undefined(sums):
        return np.full(sums.shape[:-1], math.nan)

    assert approximate_randomisation(np.ones((3, 1)), np.ones((3, 1)), undefined) is None
    with pytest.raises(ValueError, match=r"shape \(3, 1\) but rows_b has \(2, 1\)"):
        approximate_randomisation(np.ones((3, 1)), np.ones((2, 1)), mean)
    with pytest.raises(ValueError, match="no contexts"):
        approximate_randomisation(np.ones((0, 1)), np.ones((0, 1)), mean)


# holm


def test_holm_by_hand():
    # sorted .01 .02 .03 .04: times 4 3 2 1 = .04 .06 .06 .04; never decreasing: .04 .06 .06 .06
    assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.6, 0.7]) == pytest.approx([1.0, 1.0])
    assert holm([]).size == 0


def test_holm_skips_tests_that_were_not_made():
    found = holm([[math.nan, 0.01], [0.04, math.nan]])
    np.testing.assert_allclose(found, [[math.nan, 0.02], [0.04, math.nan]])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_holm_properties(values, random):
    adjusted = holm(values)
    assert (adjusted >= np.array(values) - 1e-15).all()
    assert adjusted.min() == pytest.approx(min(1.0, len(values) * min(values)))
    assert (np.diff(adjusted[np.argsort(values)]) >= 0).all()
    mixed = list(range(len(values)))
    random.shuffle(mixed)
    np.testing.assert_array_equal(holm([values[i] for i in mixed]), adjusted[mixed])


def test_holm_refuses():
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([0.1, 1.1])


# letters


def table_of(size: int, *alike: tuple[int, int]) -> np.ndarray:
    table = np.full((size, size), 0.01)
    for i, j in alike:
        table[i, j] = table[j, i] = 0.5
    return table


def test_letters_by_hand():
    assert letters([0, 1, 2], table_of(3)) == ["a", "b", "c"]
    assert letters([0, 1, 2], np.ones((3, 3))) == ["a", "a", "a"]
    assert letters([0, 1, 2, 3], table_of(4, (0, 1), (2, 3))) == ["a", "a", "b", "b"]
    # 1 is like both its neighbours, which differ from each other
    assert letters([0, 1, 2], table_of(3, (0, 1), (1, 2))) == ["a", "ab", "b"]
    # 0 is like 2, but the one between differs from both: runs of neighbours only
    assert letters([0, 1, 2], table_of(3, (0, 2))) == ["a", "b", "c"]


def test_letters_follow_the_order_not_the_numbering():
    assert letters([2, 0, 1], table_of(3, (2, 0))) == ["a", "a", "b"]
    assert letters([2, 0], table_of(3)) == ["a", "b"]
    assert letters([], np.empty((0, 0))) == []


def test_letters_read_the_p_of_the_upper_system_and_take_nan_as_not_significant():
    one_sided = np.array([[math.nan, 0.01], [0.99, math.nan]])
    assert letters([0, 1], one_sided) == ["a", "b"]
    assert letters([1, 0], one_sided) == ["a", "a"]
    assert letters([0, 1], np.full((2, 2), math.nan)) == ["a", "a"]


def test_alpha_itself_is_significant():
    assert letters([0, 1], np.full((2, 2), 0.05), alpha=0.05) == ["a", "b"]
    assert letters([0, 1], np.full((2, 2), 0.05), alpha=0.01) == ["a", "a"]


def test_many_letters():
    assert letters(range(28), table_of(28))[25:] == ["z", "a1", "b1"]


@given(st.integers(1, 7), st.integers(0, 10**6))
def test_systems_that_share_a_letter_do_not_differ_significantly(size, seed):
    rng = np.random.default_rng(seed)
    table = np.where(rng.random((size, size)) < 0.5, 0.01, 0.5)
    order = rng.permutation(size)
    found = letters(list(order), table)
    assert all(found)
    for i in range(size):
        for j in range(i + 1, size):
            if set(found[i]) & set(found[j]):
                assert table[order[i], order[j]] > 0.05
            elif j == i + 1:
                assert table[order[i], order[j]] <= 0.05


@pytest.mark.parametrize(
    ("order", "table", "message"),
    [
        ([0, 1], np.ones((2, 3)), "square matrix"),
        ([0, 0], np.ones((2, 2)), "twice"),
        ([0, 2], np.ones((2, 2)), "outside the matrix of 2"),
        ([0, -1], np.ones((2, 2)), "outside the matrix of 2"),
    ],
)
def test_letters_refuse(order, table, message):
    with pytest.raises(ValueError, match=message):
        letters(order, table)
