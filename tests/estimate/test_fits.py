"""Isotonic curves, ordinal regressions and blends: other implementations, hand-derived values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.isotonic import IsotonicRegression  # type: ignore[import-untyped]

from estimate.rated_replies import rated
from rejoinder.errors import DataError
from rejoinder.estimation.blend import best_penalty, fit_blend, ranks, ridge
from rejoinder.estimation.folds import folds_of
from rejoinder.estimation.isotonic import isotonic_curve
from rejoinder.estimation.ordinal import (
    fit_ordinal,
    level_weights,
    log_likelihood,
    rating_levels,
)
from rejoinder.metrics.calibrated.models import Blend, Isotonic, Ordinal

few = st.integers(0, 6).map(float)


@given(arrays(float, 12, elements=few), arrays(float, 12, elements=few))
def test_isotonic_equals_scikit_learn(scores: np.ndarray, ratings: np.ndarray) -> None:
    """Also with equal scores, and outside of the range; knots may be left out only inside of level
    parts."""
    others = np.concatenate([np.linspace(-1, 7, 33), scores])
    curve = isotonic_curve(scores, ratings)
    peer = IsotonicRegression(out_of_bounds="clip").fit(scores, ratings)
    assert curve.problem() is None
    np.testing.assert_allclose(curve.predict(others[np.newaxis]), peer.predict(others), atol=1e-10)


def test_isotonic_by_hand() -> None:
    """2, 1, 3: the first two fall and get their mean 1.5; the curve then rises to 3."""
    curve = isotonic_curve(np.array([0.0, 1, 2]), np.array([2.0, 1, 3]))
    assert curve.ratings == [1.5, 1.5, 3]
    assert curve.predict(np.array([[-5, 0.5, 1.5, 9]])).tolist() == [1.5, 1.5, 2.25, 3]


def test_likelihood_by_hand() -> None:
    """Slope ln 3, thresholds 0 and ln 2, x = 1 with rating 2 and x = 0 with rating 1 of 1, 2, 3.

    x = 1: P(≤1) = 1 / (1 + 3) = 1/4, P(≤2) = 1 / (1 + 3/2) = 2/5, so P(2) = 3/20.
    x = 0: P(1) = P(≤1) = 1/2.
    By slope: only x = 1 counts: P(≤1) + P(≤2) - 1 = -.35, and d log P / dβ = .35 with the sign of
    x: d log P(2) / dη = P(≤1) + P(≤2) - 1 = -.35.
    """
    x, weights = np.array([1.0, 0.0]), np.array([[0, 1, 0], [1.0, 0, 0]])
    value, by_slope, by_threshold = log_likelihood(
        np.log(3), np.array([0, np.log(2)]), x, weights, prior=np.inf
    )
    assert value == pytest.approx(np.log(3 / 20) + np.log(1 / 2))
    assert by_slope == pytest.approx(-0.35)
    # d log P(2) / dθ1 = -(1/4 · 3/4) / (3/20) = -5/4, d log P(1) / dθ1 = 1 - 1/2
    # d log P(2) / dθ2 = (2/5 · 3/5) / (3/20) = 8/5
    assert by_threshold == pytest.approx([-5 / 4 + 1 / 2, 8 / 5])


def test_derivatives_are_those_of_the_likelihood() -> None:
    rng = np.random.default_rng(1)
    x, weights = rng.normal(size=30), rng.dirichlet(np.ones(4), 30)
    at = np.array([0.7, -1.0, 0.2, 1.3])

    def value(parameters: np.ndarray) -> float:
        return log_likelihood(parameters[0], parameters[1:], x, weights)[0]

    _, by_slope, by_threshold = log_likelihood(at[0], at[1:], x, weights)
    steps = 1e-6 * np.eye(4)
    numeric = [(value(at + step) - value(at - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose([by_slope, *by_threshold], numeric, rtol=1e-6)


def test_ordinal_regression_is_at_the_maximum_and_finds_what_was_planted() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=4000)
    place = 1.5 * x + rng.logistic(size=4000)
    single = [[float(level)] for level in np.searchsorted([-2, 0, 1], place) + 1]
    model = fit_ordinal(rated(x, single), prior=np.inf)
    assert model.levels == [1, 2, 3, 4]
    assert model.problem() is None
    assert model.slope / model.spread == pytest.approx(1.5, abs=0.1)
    centred = np.array(model.thresholds) + model.slope * model.centre / model.spread
    assert centred == pytest.approx([-2, 0, 1], abs=0.15)
    standard = (x - model.centre) / model.spread
    weights = level_weights(single, np.array(model.levels))
    _, by_slope, by_threshold = log_likelihood(
        model.slope, np.array(model.thresholds), standard, weights, np.inf
    )
    assert np.abs([by_slope, *by_threshold]).max() < 1e-3  # of a sum over 4,000 replies


def test_two_levels_are_a_logistic_regression() -> None:
    """With one yes of three at 0 and two of three at 1, odds are 1/2 and 2: slope ln 4."""
    x = np.array([0.0, 0, 0, 1, 1, 1])
    model = fit_ordinal(rated(x, [[0], [0], [1], [0], [1], [1]]), prior=np.inf)
    assert model.slope / model.spread == pytest.approx(np.log(4), abs=1e-5)
    assert model.predict(np.array([[0.0, 1.0]])) == pytest.approx([1 / 3, 2 / 3], abs=1e-5)


def test_separated_levels_stay_finite() -> None:
    model = fit_ordinal(rated(np.arange(10.0), [[float(n > 4)] for n in range(10)]))
    assert np.isfinite([model.slope, *model.thresholds]).all()


def test_averages_count_for_both_levels() -> None:
    """3.4 is .6 of a 3 and .4 of a 4; ratings 1 and 3 of one reply count half each."""
    weights = level_weights([[3.4], [1, 3]], np.arange(1.0, 6))
    np.testing.assert_allclose(weights, [[0, 0, 0.6, 0.4, 0], [0.5, 0, 0.5, 0, 0]])


def test_levels_of_averages_are_whole_numbers() -> None:
    assert rating_levels([[1 + n / 7] for n in range(29)]).tolist() == [1, 2, 3, 4, 5]
    with pytest.raises(DataError, match=r"101 levels from 0 to 100.*isotonic"):
        rating_levels([[float(n)] for n in range(101)])


def test_ranks_by_hand() -> None:
    """Scores 1, 2, 2, 5: below them, equal ones half, are .125, .5, .5 and .875 of all."""
    scale = ranks(np.array([2.0, 5, 1, 2, np.nan]))
    assert scale.scores == [1, 2, 5]
    assert scale.shares == [0.125, 0.5, 0.875]
    np.testing.assert_allclose(scale.of(np.array([0, 2, 3.5])), [-0.375, 0, 0.1875])


def test_an_infinite_penalty_leaves_the_belief() -> None:
    rng = np.random.default_rng(3)
    ranked = rng.uniform(-0.5, 0.5, (3, 50))
    ratings = 3 + 2 * ranked[0] + rng.normal(0, 0.1, 50)
    believed = np.full(3, 1 / 3)
    _, weights = ridge(ranked, ratings, believed, np.inf)
    assert np.ptp(weights) == pytest.approx(0)
    assert weights[0] > 0
    _, free = ridge(ranked, ratings, believed, 0.0)
    assert free == pytest.approx([2, 0, 0], abs=0.2)
    assert ridge(ranked, 6 - ratings, believed, np.inf)[1].tolist() == [0, 0, 0]


def test_few_ratings_stay_with_the_belief_and_many_leave_it() -> None:
    rng = np.random.default_rng(4)
    ranked = rng.uniform(-0.5, 0.5, (4, 800))
    ratings = 3 + ranked[0] + rng.normal(0, 0.5, 800)
    believed = np.full(4, 1 / 4)
    context = np.arange(800)
    few_penalty = best_penalty(ranked[:, :15], ratings[:15], context[:15], believed)
    many_penalty = best_penalty(ranked, ratings, context, believed)
    assert few_penalty > many_penalty
    assert many_penalty < 1


def test_a_blend_of_noise_and_a_good_metric_prefers_the_good_one() -> None:
    rng = np.random.default_rng(5)
    truth = rng.normal(size=400)
    scores = np.array([rng.normal(size=400), truth + rng.normal(0, 0.5, 400)])
    model = fit_blend(rated(scores, [[value] for value in truth]))
    assert model.problem() is None
    assert model.weights[1] > 5 * abs(model.weights[0])
    only_noise = fit_blend(rated(scores[:, :12], [[value] for value in truth[:12]]), prior=["m0"])
    assert only_noise.metrics == 2


@settings(max_examples=40)
@given(st.lists(st.integers(0, 9), min_size=12, max_size=40), st.integers(2, 4))
def test_a_context_is_in_one_fold_and_folds_are_even(names: list[int], folds: int) -> None:
    context = np.array([*names, *range(10)])
    fold = folds_of(context, folds, seed=1)
    assert set(fold.tolist()) == set(range(folds))
    for group in np.unique(context):
        assert len(set(fold[context == group].tolist())) == 1
    assert np.ptp(np.bincount(fold)) <= np.bincount(context).max()


def test_fewer_contexts_than_folds() -> None:
    with pytest.raises(DataError, match=r"have 3 contexts, fewer than 5 folds.*folds=3"):
        folds_of(np.array([0, 0, 1, 2]), 5, seed=0)


def test_stored_numbers_that_do_not_fit_are_found() -> None:
    assert Isotonic([0, 1], [2, 3]).problem() is None
    wrong = [([0.0, 2, 1], [1.0, 2, 3]), ([0.0, 1], [2.0, 1]), ([0.0, 1], [1.0])]
    for scores, ratings in wrong:
        assert Isotonic(scores, ratings).problem()
    assert Ordinal(0, 1, 1, [0], [1]).problem()
    assert Ordinal(0, 0, 1, [0], [1, 2]).problem()
    assert Blend([], [], 0).problem()
