"""Conformal intervals: quantiles by hand, and coverage in simulations."""

from __future__ import annotations

import numpy as np
import pytest

from estimate.rated_replies import rated
from rejoinder.estimation.calibrate import Method, cross_validate, fit_for, rating_scale
from rejoinder.metrics.calibrated.intervals import RatingScale, cross_conformal
from rejoinder.metrics.calibrated.models import Isotonic


def constant(value: float) -> Isotonic:
    return Isotonic([0.0], [value])


def test_ends_by_hand() -> None:
    """Nine errors 1 … 9 around 10, coverage .8: α (n + 1) = 2, so the second smallest of 10 - R,
    which is 10 - 8, and the eighth of 10 + R."""
    low, high = cross_conformal(
        [constant(10)], np.arange(1.0, 10), [0] * 9, np.zeros((1, 1)), coverage=0.8
    )
    assert (low.tolist(), high.tolist()) == ([2], [18])


def test_each_error_goes_with_the_model_that_did_not_see_it() -> None:
    """Models 0 and 100: ends are taken over 0 ± 1, 0 ± 2, 100 ± 3. With coverage .5, α (n + 1) = 2:
    the second smallest lower end of -2, -1, 97 and the second upper one of 1, 2, 103."""
    models = [constant(0), constant(100)]
    low, high = cross_conformal(models, np.array([1.0, 2, 3]), [0, 0, 1], np.zeros((1, 2)), 0.5)
    assert (low.tolist(), high.tolist()) == ([-1, -1], [2, 2])


def test_too_few_ratings_give_the_whole_scale() -> None:
    low, high = cross_conformal([constant(3)], np.ones(8), [0] * 8, np.zeros((1, 1)), 0.9)
    assert np.isinf(low).all()
    assert np.isinf(high).all()
    ends = RatingScale(1, 5, 1.0).inwards(low, high, np.array([3.0]))
    assert [end.tolist() for end in ends] == [[1], [5]]


def test_ends_move_to_ratings_inside() -> None:
    """1.2 to 3.9 holds the ratings 2 and 3; 2.2 to 2.7 holds none, the nearest to 2.6 is 3. Thirds
    are exact up to rounding."""
    scale = RatingScale(1, 5, 1.0)
    low, high = scale.inwards(np.array([1.2, 2.2]), np.array([3.9, 2.7]), np.array([2.0, 2.6]))
    assert (low.tolist(), high.tolist()) == ([2, 3], [3, 3])
    thirds = RatingScale(1, 5, 1 / 3)
    low, high = thirds.inwards(np.array([1 + 1 / 3]), np.array([2.34]), np.array([2.0]))
    assert low[0] == pytest.approx(4 / 3)
    assert high[0] == pytest.approx(7 / 3)


def test_steps_of_means() -> None:
    """Three ratings of each reply: means lie a third apart. Other numbers of ratings: no steps."""
    three = rated(np.arange(2.0), [[1, 2, 5], [3, 3, 3]])
    assert rating_scale(three) == RatingScale(1, 5, 1 / 3)
    assert rating_scale(rated(np.arange(2.0), [[1, 5], [3]])) == RatingScale(1, 5)
    assert rating_scale(rated(np.arange(2.0), [[1.5], [3]])) == RatingScale(1.5, 3)
    assert rating_scale(three, 0, 6).high == 6


@pytest.mark.parametrize("method", ["isotonic", "ordinal"])
def test_coverage_of_new_replies_by_simulation(method: Method) -> None:
    """80 ratings from 1 to 5, contexts of two replies that share their difficulty: intervals for
    90 % cover 88 to 96 % of 40 × 200 new ratings (moving ends inwards never loses a rating, so
    coverage is above the nominal one rather than below)."""
    rng = np.random.default_rng(6)

    def replies(count: int) -> tuple[np.ndarray, list[list[float]], np.ndarray]:
        context = np.repeat(np.arange(count // 2), 2)
        quality = rng.normal(size=count) + 0.7 * rng.normal(size=count // 2)[context]
        scores = quality + rng.normal(0, 0.8, count)
        ratings = np.clip(np.rint(3 + quality + rng.normal(0, 0.5, count)), 1, 5)
        return scores, [[float(rating)] for rating in ratings], context

    covered = []
    for _ in range(40):
        known = rated(*replies(80))
        scale = rating_scale(known, 1, 5)
        fit = fit_for(method)
        tested = cross_validate(known, fit, scale, folds=5, coverage=0.9, seed=0)
        scores, single, _ = replies(200)
        ends = cross_conformal(
            tested.folds, tested.errors, tested.fold.tolist(), scores[np.newaxis], 0.9
        )
        low, high = scale.inwards(*ends, tested.model.predict(scores[np.newaxis]))
        new = np.array(single)[:, 0]
        covered.append(((low <= new) & (new <= high)).mean())
    assert 0.88 <= np.mean(covered) <= 0.96


def test_measured_coverage_is_that_of_unseen_replies() -> None:
    """The coverage that is reported from 300 ratings is near 90 %, also for each of two systems."""
    rng = np.random.default_rng(7)
    quality = rng.normal(size=300)
    some = rated(quality + rng.normal(0, 1, 300), [[float(q)] for q in quality])
    tested = cross_validate(
        some, fit_for("isotonic"), rating_scale(some), folds=5, coverage=0.9, seed=0
    )
    assert 0.86 <= tested.intervals.covered <= 0.95
    assert sum(each.n for each in tested.intervals.by_system) == 300
    assert tested.warnings == []


def test_useless_scores_are_warned_of() -> None:
    rng = np.random.default_rng(8)
    some = rated(rng.normal(size=40), [[float(value)] for value in rng.normal(size=40)])
    tested = cross_validate(
        some, fit_for("isotonic"), rating_scale(some), folds=5, coverage=0.9, seed=0
    )
    assert any("the scores say nothing about these ratings" in each for each in tested.warnings)


def test_overfitting_is_warned_of() -> None:
    """A fit that learns nothing orders replies less well than the scores."""
    rng = np.random.default_rng(9)
    truth = rng.normal(size=60)
    some = rated(truth, [[float(value)] for value in truth])

    def reversed_fit(learn: object) -> Isotonic:
        return constant(0.0)

    tested = cross_validate(some, reversed_fit, rating_scale(some), folds=5, coverage=0.9, seed=0)
    assert any("the calibration overfits" in each for each in tested.warnings)
