"""Prediction-powered means: hand-derived values, ppi-python as the peer, coverage by simulation."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate, ppi_mean_pval  # type: ignore[import-untyped]
from scipy.stats import binom, norm
from scipy.stats import t as student

from rejoinder.estimation.prediction_powered import (
    TARGETS,
    Replies,
    Target,
    _combined,
    estimate_means,
)

NAN = float("nan")


def replies(
    rating: np.ndarray,
    system: np.ndarray | None = None,
    context: np.ndarray | None = None,
    weight: np.ndarray | None = None,
) -> Replies:
    count = len(rating)
    system = np.zeros(count, np.int64) if system is None else system
    context = np.arange(count) if context is None else context
    weight = np.ones(count) if weight is None else weight
    return Replies(system, context, np.asarray(rating, float), weight, int(system.max()) + 1)


def test_by_hand() -> None:
    """Ratings 1, 3, 5 of scores 0, 1, 2; two more replies have scores 3 and 4, so the mean is 2.

    With λ = 1/2: corrected ratings 1 - .5 (0 - 2) = 2, 3 - .5 (1 - 2) = 3.5, 5 - 0 = 5; mean 3.5.
    Influences: of the rated (-1.5, 0, 1.5) / 3 = -.5, 0, .5, and of all λ (x - 2) / 5 = -.2, -.1,
    0, .1, .2, centred among the rated (-.1, 0, .1) and the others (-.05, .05). Sums: -.6, 0, .6,
    -.05, .05; their squares .36 + .36 + .0025 + .0025 = .725, times 3 / 2 = 1.0875.
    """
    few = replies(np.array([1, 3, 5, NAN, NAN]))
    means = estimate_means(few, np.arange(5.0), slope=0.5)
    assert means.mean[0] == pytest.approx(3.5)
    assert means.covariance[0, 0] == pytest.approx(1.0875)
    # people alone: mean 3, variance (4 + 0 + 4) / 9 · 3 / 2 = 4/3, as s² / n = 4 / 3; t with 2 df
    alone = estimate_means(few, None)
    assert alone.mean[0] == pytest.approx(3.0)
    assert alone.covariance[0, 0] == pytest.approx(4 / 3)
    low, high = alone.interval(0)
    assert (low, high) == pytest.approx(
        (3 - 4.302653 * 1.154701, 3 + 4.302653 * 1.154701), rel=1e-5
    )


def test_replies_by_hand() -> None:
    """Just these five replies, three of them rated: the variance of sampling without replacement is
    s² / n (1 - 3/5) = 4/3 · 2/5."""
    means = estimate_means(replies(np.array([1, 3, 5, NAN, NAN])), None, target="replies")
    assert means.covariance[0, 0] == pytest.approx(8 / 15)
    everything = estimate_means(replies(np.array([1.0, 3, 5, 2, 2])), None, target="replies")
    assert everything.covariance[0, 0] == 0


def test_contexts_count_together() -> None:
    """Two replies to each of two contexts: (1, 1), (3, 5). Mean 2.5, influences of the contexts
    (-1.5 - 1.5) / 4 = -.75 and (.5 + 2.5) / 4 = .75: variance 2 · .5625 · 2 / 1 = 2.25."""
    few = replies(np.array([1.0, 1, 3, 5]), context=np.array([0, 0, 1, 1]))
    means = estimate_means(few, None)
    assert means.covariance[0, 0] == pytest.approx(2.25)
    assert means.freedom[0] == pytest.approx(1)


def test_weights_by_hand() -> None:
    """Replies chosen with probability 1/2 count twice as much as those chosen for certain: ratings
    1 and 4 with weights 2 and 1 have the mean 6 / 3 = 2."""
    means = estimate_means(replies(np.array([1.0, 4, NAN]), weight=np.array([2.0, 1, 1])), None)
    assert means.mean[0] == pytest.approx(2)


@pytest.mark.parametrize("labelled,others", [(20, 300), (60, 90), (200, 1000)])
@pytest.mark.parametrize("power", [None, 0.0, 0.4, 1.0])
def test_equals_ppi_python(labelled: int, others: int, power: float | None) -> None:
    """With λ given (or as ppi-python tunes it), replies that are independent, the normal
    distribution and without the factor n / (n - 1), the estimate, its interval and p are the same.

    ppi-python subtracts the mean of the rated from the mean of the *other* predictions, and we from
    the mean of all: its λ is ours times N / (n + N).
    """
    rng = np.random.default_rng(labelled)
    truth = rng.normal(3, 1, labelled + others)
    predicted = 0.7 * truth + rng.normal(0, 0.6, labelled + others) + 5
    y, x, more = truth[:labelled], predicted[:labelled], predicted[labelled:]
    if power is None:
        # λ = Cov(y, x) / ((1 + n / N) Var(x)), Angelopoulos et al. 2023, example 6.1
        both = np.concatenate([x, more])
        covariance = np.mean((y - y.mean()) * (x - x.mean()))
        power = float(np.clip(covariance / both.var() / (1 + labelled / others), 0, 1))
        tuned = ppi_mean_pointestimate(y, x, more)
        assert ppi_mean_pointestimate(y, x, more, lam=power) == pytest.approx(tuned, abs=2e-3)
    ratings = np.concatenate([y, np.full(others, NAN)])
    slope = power * (labelled + others) / others
    means = estimate_means(replies(ratings), predicted, slope=slope)
    assert means.mean[0] == pytest.approx(ppi_mean_pointestimate(y, x, more, lam=power), abs=1e-8)
    error = np.sqrt(means.covariance[0, 0] * (labelled - 1) / labelled)
    low, high = ppi_mean_ci(y, x, more, alpha=0.05, lam=power)
    reach = norm.ppf(0.975) * error
    np.testing.assert_allclose(means.mean[0] - reach, np.ravel(low)[0], atol=1e-8)
    np.testing.assert_allclose(means.mean[0] + reach, np.ravel(high)[0], atol=1e-8)
    p = 2 * norm.sf(abs(means.mean[0] - 3) / error)
    peer = ppi_mean_pval(y, x, more, null=3, lam=power)
    np.testing.assert_allclose(p, np.ravel(peer)[0], atol=1e-8)


@pytest.mark.parametrize("target", ["contexts", "replies"])
def test_unbiased_over_all_samples(target: Target) -> None:
    """The mean over all 20 ways to rate 3 of 6 replies is the truth, though the metric is wrong.
    With ``replies`` the mean variance is the variance over the ways (Cochran 1977, theorem 2.2)."""
    truth = np.array([1.0, 2, 2, 4, 5, 3])
    wrong = np.array([9.0, -3, 0, 1, -7, 2])
    found, variances = [], []
    for chosen in combinations(range(6), 3):
        ratings = np.full(6, NAN)
        ratings[list(chosen)] = truth[list(chosen)]
        means = estimate_means(replies(ratings), wrong, slope=0.3, target=target)
        found.append(means.mean[0])
        variances.append(means.covariance[0, 0])
    assert np.mean(found) == pytest.approx(truth.mean())
    if target == "replies":
        assert np.mean(variances) == pytest.approx(np.var(found))


def test_difference_in_shared_contexts() -> None:
    """Differences of 0, 1, 1, 1, 2 in five contexts: mean 1, variance of the mean .5 / 5 = .1 by 4
    degrees of freedom, though ratings vary much more between contexts. If the two are rated in
    different contexts, variances add up."""
    first = np.array([1.0, 2, 3, 4, 5])
    system, context = np.repeat([0, 1], 5), np.tile(np.arange(5), 2)
    paired = replies(np.concatenate([first, first + np.array([0, 1, 1, 1, 2])]), system, context)
    means = estimate_means(paired, None)
    assert means.mean[1] - means.mean[0] == pytest.approx(1)
    assert means.error_of_difference(1, 0) == pytest.approx((np.sqrt(0.1), 4))
    _, low, high, p = means.difference(1, 0)
    # t = 1 / √.1 = 3.1623 with 4 degrees of freedom; the differences are symmetric
    assert (low, high) == pytest.approx(
        (1 - 2.776445 * 0.316228, 1 + 2.776445 * 0.316228), rel=1e-4
    )
    assert p == pytest.approx(2 * student.sf(np.sqrt(10), 4))
    apart = replies(np.concatenate([first, first + 0.5]), system, np.arange(10))
    means = estimate_means(apart, None)
    _, low, high, p = means.difference(1, 0)
    # variance 2 · 2.5 / 5 = 1 with 10 - 2 = 8 degrees of freedom: t = 2.306
    assert (low, high) == pytest.approx((0.5 - 2.306, 0.5 + 2.306), abs=1e-3)


def test_equal_differences_are_not_certain() -> None:
    """Three of 20 contexts are rated, and in all of them system 0 is 1 better: nothing says how
    much differences vary, whatever scores say of them. Just these replies, all rated, are known."""
    rating = np.full((2, 20), NAN)
    rating[:, :3] = [[2, 3, 5], [1, 2, 4]]
    system, context = np.repeat([0, 1], 20), np.tile(np.arange(20), 2)
    some = replies(rating.ravel(), system, context)
    for scores in (None, np.random.default_rng(1).normal(size=40)):
        for target in TARGETS:
            means = estimate_means(some, scores, target=target)
            assert not np.isnan(means.interval(0)).any()
            assert np.isnan(means.difference(0, 1)[1:]).all()
    all_rated = replies(rating[:, :3].ravel(), np.repeat([0, 1], 3), np.tile(np.arange(3), 2))
    assert np.isnan(estimate_means(all_rated, None).difference(0, 1)[1:]).all()
    these = estimate_means(all_rated, None, target="replies")
    assert these.difference(0, 1) == (1, 1, 1, 0)
    equal = estimate_means(replies(np.full(3, 2.0)), None, target="replies")
    assert equal.interval(0) == (2, 2)


ratings_lists = st.lists(st.integers(1, 5), min_size=6, max_size=30)


@settings(max_examples=60, deadline=None)
@given(ratings_lists, st.floats(-50, 50), st.floats(0.1, 20), st.integers(0, 1000))
def test_scale_and_order_do_not_matter(
    ratings: list[int], shift: float, factor: float, seed: int
) -> None:
    """Scores on another scale, also turned around, and replies in another order give the same."""
    rng = np.random.default_rng(seed)
    count = 2 * len(ratings)
    rating = np.concatenate([ratings, np.full(len(ratings), NAN)])
    system, context = rng.integers(0, 2, count), rng.integers(0, 8, count)
    system[:2] = [0, 1]
    scores = rng.normal(size=count)
    plain = estimate_means(replies(rating, system, context), scores)
    scaled = estimate_means(replies(rating, system, context), shift - factor * scores)
    order = rng.permutation(count)
    shuffled = estimate_means(replies(rating[order], system[order], context[order]), scores[order])
    for other in (scaled, shuffled):
        np.testing.assert_allclose(other.mean, plain.mean, atol=1e-7)
        np.testing.assert_allclose(other.covariance, plain.covariance, atol=1e-7)


def test_a_metric_without_information_changes_nothing() -> None:
    few = replies(np.array([1.0, 3, 4, NAN, NAN]))
    alone = estimate_means(few, None)
    for scores in (np.full(5, 2.0), np.full(5, NAN)):
        means = estimate_means(few, scores)
        assert means.mean[0] == pytest.approx(alone.mean[0])
        assert means.covariance[0, 0] == pytest.approx(alone.covariance[0, 0])


def test_unknown_intervals() -> None:
    """One context, or equal ratings, say nothing about the spread."""
    one = replies(np.array([1.0, 2, NAN]), context=np.array([0, 0, 1]))
    assert np.isnan(estimate_means(one, None).interval(0)).all()
    equal = replies(np.array([2.0, 2, 2, NAN]))
    assert np.isnan(estimate_means(equal, np.arange(4.0)).interval(0)).all()
    system = np.array([0, 0, 0, 1])
    unrated = estimate_means(replies(np.array([1.0, 2, 3, NAN]), system), np.arange(4.0))
    assert np.isnan(unrated.mean[1])
    assert np.isnan(unrated.difference(0, 1)).all()


WORTH = {"good": 0.8, "useless": 0.0, "adversarial": -0.6}


@pytest.mark.parametrize("worth", WORTH.values(), ids=WORTH)
@pytest.mark.parametrize("target", ["contexts", "replies"])
def test_coverage(worth: float, target: Target) -> None:
    """1,000 studies of 20 ratings per system on a scale from 1 to 5: intervals of means and of the
    difference cover in 93 to 97 %, beyond chance: three standard errors are 2 %, so the limits here
    are 92.4 and 97.4. Intervals are at most 1.05 times as wide as those of people alone."""
    rng = np.random.default_rng(7)
    contexts, draws = 150, 1000
    system, context = np.tile([0, 1], contexts), np.repeat(np.arange(contexts), 2)
    covered, widths = np.zeros(3), np.zeros(2)
    grid = rng.normal(size=(400_000, 2))
    both = grid[:, 0] * 0.6 + grid[:, 1] * 0.8
    expected = [np.clip(np.rint(both + mean), 1, 5).mean() for mean in (2.8, 3.3)]
    for _ in range(draws):
        hard = rng.normal(size=contexts)[context]
        quality = 0.6 * hard + 0.8 * rng.normal(size=2 * contexts)
        truth = np.clip(np.rint(quality + np.where(system == 0, 2.8, 3.3)), 1, 5)
        noise = rng.normal(size=2 * contexts)
        # it also favours system 0
        scores = worth * quality + np.sqrt(1 - worth**2) * noise + 3 * (system == 0)
        rating = np.full(2 * contexts, NAN)
        for number in (0, 1):
            chosen = 2 * rng.choice(contexts, 20, replace=False) + number
            rating[chosen] = truth[chosen]
        studied = replies(rating, system, context)
        means = estimate_means(studied, scores, target=target)
        wanted = expected
        if target == "replies":
            wanted = [truth[system == number].mean() for number in (0, 1)]
        ends = [means.interval(0), means.interval(1), means.difference(1, 0)[1:3]]
        true = [*wanted, wanted[1] - wanted[0]]
        covered += [low <= value <= high for (low, high), value in zip(ends, true, strict=True)]
        alone = estimate_means(studied, None, target=target)
        widths += [np.subtract(*each.interval(0)[::-1]) for each in (means, alone)]
    assert (covered / draws > 0.924).all() and (covered / draws < 0.974).all(), covered
    assert widths[0] <= 1.05 * widths[1]
    if worth == WORTH["good"]:
        assert widths[0] < 0.75 * widths[1]


def test_uneven_ratings_by_hand() -> None:
    """Ratings 0, 4, 4, 4: mean 3, influences -3/4, 1/4, 1/4, 1/4, squares .75, cubes -.375. Raw
    skewness -.375 / .75^1.5 = -.57735, times √12 / 2 = -1; damped -1 / (1 + 12 / 16) = -4/7; of
    ratings with two values a third: a = -4/21.

    The error is √(.75 · 4 / 3) = 1 and Student's quantile with 3 degrees of freedom q = 3.182446.
    The ends are 3 - T with g(T) = ±q: T = 3/a (∛(1 + a (±q - a/6)) - 1), for +q 3/a (∛.387773
    - 1) = 4.2647, for -q 3/a (∛1.600132 - 1) = -2.6718.
    """
    means = estimate_means(replies(np.array([0.0, 4, 4, 4])), None)
    low, high = means.interval(0)
    assert (low, high) == pytest.approx((3 - 4.2647, 3 + 2.6718), abs=2e-3)
    assert means.fineness == pytest.approx(1 / 3)
    for end in (low, high):
        a, t = -4 / 21, (3 - end) / 1
        transformed = t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6
        assert abs(transformed) == pytest.approx(3.182446, abs=1e-5)
    # two contexts, or symmetric ratings: Student's interval
    symmetric = estimate_means(replies(np.array([1.0, 3, 5])), None).interval(0)
    assert sum(symmetric) / 2 == pytest.approx(3)


def test_fineness_counts_the_steps_of_the_scale() -> None:
    """1, 2 and 5 are four steps of 1 apart, also if nobody gave 3 or 4; 0 and 10 one step."""
    for ratings, steps in (([1, 2, 5], 4), ([0, 10, 10], 1), ([1, 2, 3], 2), ([1.0, 1.5, 5], 8)):
        means = estimate_means(replies(np.array(ratings, float)), None)
        assert means.fineness == pytest.approx(min(steps / 3, 1))


def test_shares_are_covered() -> None:
    """Ratings 0 and 1: over true shares from .1 to .9, Student's intervals of 20 ratings cover
    94.6 % in the mean and 86 % at worst; these 95 to 97 % and more than 92 %, by the binomial
    distribution (no simulation; without the draws whose ratings are all equal)."""
    found = {
        k: estimate_means(replies(np.repeat([0.0, 1], [20 - k, k])), None).interval(0)
        for k in range(1, 20)
    }
    covered = []
    for share in np.linspace(0.1, 0.9, 81):
        weight = np.array([binom.pmf(k, 20, share) for k in found])
        inside = [low <= share <= high for low, high in found.values()]
        covered.append(float(weight @ inside / weight.sum()))
    assert 0.95 < np.mean(covered) < 0.97
    assert min(covered) > 0.92


def test_p_and_interval_agree() -> None:
    """The interval at 1 - p ends at 0."""
    rng = np.random.default_rng(3)
    system, context = np.tile([0, 1], 25), np.repeat(np.arange(25), 2)
    rating = np.where(system == 0, rng.exponential(size=50), 1.5 * rng.exponential(size=50))
    means = estimate_means(replies(rating, system, context), None)
    p = means.difference(0, 1)[3]
    low, high = means.difference(0, 1, 1 - p)[1:3]
    assert min(abs(low), abs(high)) == pytest.approx(0, abs=1e-9)


def test_contexts_of_different_sizes_by_hand() -> None:
    """Contexts with ratings (1, 1, 1) and (5): mean 2, influences of the contexts -3/4 and 3/4,
    shares 3/4 and 1/4. The jackknife that leaves out a context: the means without one are 5 and 1,
    (3² + 1²) · 1/2 = 5; and (.75² / .25² + .75² / .75²) / 2 = 5."""
    few = replies(np.array([1.0, 1, 1, 5]), context=np.array([0, 0, 0, 1]))
    assert estimate_means(few, None).covariance[0, 0] == pytest.approx(5)


def test_variance_of_few_contexts_is_not_believed() -> None:
    """Two variances of 1 with 1 and 99 degrees of freedom: Banerjee's quantile is the root of
    (12.706² + 1.984²) / 2 = 82.69, 9.093, which is Student's with 1.18 degrees of freedom."""
    freedom = _combined(np.ones(1), np.ones(1), np.ones(1), np.array([99.0]))
    assert student.ppf(0.975, freedom[0]) == pytest.approx(9.093, abs=2e-3)
    # and without the first it is the second's, within what the function can be inverted
    assert _combined(np.zeros(1), np.ones(1), np.ones(1), np.array([99.0]))[0] == pytest.approx(99)


def test_skewed_ratings_are_covered() -> None:
    """Most replies of a system have the best rating, beside another one that has all: Student's
    intervals of 20 ratings hold the mean in 89 % of 2,000 draws, these in 93 to 97 %."""
    rng = np.random.default_rng(1)
    truth = np.repeat([1.0, 2, 3, 4, 5], [30, 30, 60, 180, 700])
    others = np.tile([1.0, 2, 3, 4, 5], 4)
    system = np.repeat([0, 1], 20)
    inside, plain, draws = 0, 0, 0
    for _ in range(2000):
        drawn = rng.choice(truth, 20)
        if np.ptp(drawn) == 0:
            continue
        draws += 1
        means = estimate_means(replies(np.concatenate([drawn, others]), system), None)
        low, high = means.interval(0)
        inside += low <= truth.mean() <= high
        reach = student.ppf(0.975, 19) * drawn.std(ddof=1) / np.sqrt(20)
        plain += abs(drawn.mean() - truth.mean()) <= reach
    assert plain / draws < 0.91
    assert 0.93 < inside / draws < 0.97


def test_equal_means_of_two_contexts_are_chance() -> None:
    """Contexts with ratings (1, 3) and (3, 1) have the same mean, 2, and their variance is
    estimated as 0; it is at least .02 of that of four independent ratings, 4/3 / 4 = 1/3."""
    few = replies(np.array([1.0, 3, 3, 1]), context=np.array([0, 0, 1, 1]))
    means = estimate_means(few, None)
    assert means.covariance[0, 0] == pytest.approx(0.02 / 3)
    low, high = means.interval(0)  # Student's quantile with 1 degree of freedom is 12.706
    assert (high - low) / 2 == pytest.approx(12.706 * np.sqrt(0.02 / 3), rel=1e-3)
    # of just these replies, all of which are rated, the mean is known
    assert estimate_means(few, None, target="replies").covariance[0, 0] == 0


def test_contexts_that_have_nearly_all_ratings() -> None:
    """Nine ratings of one context and one of another: (81 + 1)² / (81² + 1) - 1 = .0245 degrees of
    freedom, at least .5; two contexts alike have 1."""
    few = replies(np.arange(10.0), context=np.array([0] * 9 + [1]))
    assert estimate_means(few, None).freedom[0] == pytest.approx(0.5)
