"""Bradley-Terry by hand, against scipy, and where there is no ordinary solution.

tests/differential compares it with another package."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from rejoinder.pairwise.answers import Contest
from rejoinder.pairwise.bradley_terry import (
    PRIOR,
    bradley_terry,
    expected_rates,
    rate_errors,
    solve,
)

WIDE = 1e4
"""A prior that tells nothing, where the answers tell enough."""


def contest(wins) -> Contest:
    table = np.array(wins, float)
    return Contest("c", np.arange(len(table)), table)


@st.composite
def tables(draw):
    size = draw(st.integers(2, 6))
    halves = draw(arrays(np.int8, (size, size), elements=st.integers(0, 6)))
    wins = halves / 2
    np.fill_diagonal(wins, 0)
    return wins


def log_posterior(strength, wins, prior):
    """The plain formula: each win's logarithm, and the prior's."""
    difference = strength[:, None] - strength
    return -(wins * np.logaddexp(0, -difference)).sum() - (strength**2).sum() / (2 * prior**2)


def test_two_by_hand() -> None:
    # 3 wins against 1: exp(strength difference) = 3; around 0 they are ±log(3)/2
    found = bradley_terry(contest([[0, 3], [1, 0]]), prior=WIDE)
    assert found.strength == pytest.approx([math.log(3) / 2, -math.log(3) / 2], abs=1e-6)
    assert found.rate == pytest.approx([0.75, 0.25], abs=1e-6)
    # information about the difference: n p (1 - p) = 4 * 3/16 = 3/4; the error of the difference
    # is sqrt(4/3), of a half of it sqrt(1/3)
    assert found.error == pytest.approx([math.sqrt(1 / 3)] * 2, rel=1e-5)
    # the rate changes with the difference by p (1 - p) = 3/16: 3/16 * sqrt(4/3)
    assert found.rate_error == pytest.approx([3 / 16 * math.sqrt(4 / 3)] * 2, rel=1e-5)
    assert (found.components, found.prior_bounded, found.circular_triads) == (1, 0, 0)


def test_errors_of_all_rates_by_hand() -> None:
    # nothing known: s = 9 I, the rate changes with either strength by 1/4: sqrt(2 * 9 / 16)
    assert rate_errors(np.zeros((2, 2))) == pytest.approx([math.sqrt(18 / 16)] * 2)
    # a win each: strengths 0, the information about the difference of a vote is 1/4, of two 1/2;
    # with the prior, the variance of the difference is 2 / (1/9 + 2 * 1/2) = 1.8
    assert rate_errors(np.array([[0.0, 1], [1, 0]])) == pytest.approx([math.sqrt(1.8) / 4] * 2)
    assert rate_errors(np.zeros((1, 1))) == pytest.approx([0])


def test_errors_of_all_rates_include_replies_that_no_answer_connects() -> None:
    connected = np.array([[0.0, 2, 1], [1, 0, 3], [1, 0, 0]])
    assert rate_errors(connected) == pytest.approx(bradley_terry(contest(connected)).rate_error)
    # 0 and 1 were compared often, 2 never: of 2 nothing is known, so 0 and 1 are uncertain, too
    apart = np.array([[0.0, 40, 0], [40, 0, 0], [0, 0, 0]])
    found, within = rate_errors(apart), bradley_terry(contest(apart)).rate_error
    assert np.isnan(within[2])
    assert (found[:2] > 5 * within[:2]).all()
    assert found[2] > found[0]
    more = apart + np.array([[0, 0, 20], [0, 0, 20], [20, 20, 0]])
    assert (rate_errors(more) < found / 4).all()


def test_a_tie_is_half_a_win_for_either() -> None:
    ties = bradley_terry(contest([[0, 0.5 * 2 + 2], [0.5 * 2, 0]]), prior=WIDE)
    wins = bradley_terry(contest([[0, 3], [1, 0]]), prior=WIDE)
    assert np.array_equal(ties.strength, wins.strength)
    level = bradley_terry(contest([[0, 0.5], [0.5, 0]]))
    assert level.strength == pytest.approx([0, 0])
    assert level.prior_bounded == 0


@given(tables(), st.sampled_from([1.0, PRIOR, 10.0]))
def test_strengths_equal_those_of_scipy(wins, prior) -> None:
    """The summit of the plain formula, and its curvature there by differences."""
    peer = minimize(
        lambda s: -log_posterior(s, wins, prior), np.zeros(len(wins)), tol=1e-12, method="BFGS"
    )
    strength, covariance = solve(wins, prior)
    assert strength == pytest.approx(peer.x, abs=1e-4)
    step = 1e-4
    unit = np.eye(len(wins)) * step
    plain = [
        [
            log_posterior(strength + a + b, wins, prior)
            - log_posterior(strength + a - b, wins, prior)
            - log_posterior(strength - a + b, wins, prior)
            + log_posterior(strength - a - b, wins, prior)
            for b in unit
        ]
        for a in unit
    ]
    information = -np.array(plain) / (4 * step**2)
    assert np.linalg.inv(covariance) == pytest.approx(information, abs=1e-4)


@given(tables())
def test_invariants(wins) -> None:
    found = bradley_terry(contest(wins))
    games = wins + wins.T
    compared = games.sum(axis=1) > 0
    assert np.array_equal(np.isnan(found.strength), ~compared)
    assert np.array_equal(found.component < 0, ~compared)
    for part in range(found.components):
        own = found.component == part
        assert found.strength[own].sum() == pytest.approx(0, abs=1e-8)
        # who is preferred is lost to: the rates of a part average to a half
        assert found.rate[own].mean() == pytest.approx(0.5)
    assert np.all(found.error[compared] > 0)
    assert np.all((found.rate[compared] > 0) & (found.rate[compared] < 1))
    turned = bradley_terry(contest(wins.T))
    assert np.allclose(turned.strength, -found.strength, equal_nan=True, atol=1e-7)


def test_one_that_always_wins_is_bounded_by_the_prior() -> None:
    # 0 always wins; 1 and 2 beat each other
    wins = [[0, 5, 5], [0, 0, 3], [0, 3, 0]]
    found = bradley_terry(contest(wins))
    assert found.prior_bounded == 1
    assert np.isfinite(found.strength).all()
    assert found.strength.argmax() == 0
    assert bradley_terry(contest(wins), prior=30).strength[0] > found.strength[0] + 1
    # uncertain upwards: its error is larger than that of the others
    assert found.error.argmax() == 0
    assert found.rate[0] < 1


def test_more_wins_move_a_strength_that_the_prior_bounds() -> None:
    one, many = (bradley_terry(contest([[0, n], [0, 0]])).rate[0] for n in (1, 100))
    assert 0.5 < one < many < 1


def test_a_circular_triad_gives_equal_strengths() -> None:
    found = bradley_terry(contest([[0, 1, 0], [0, 0, 1], [1, 0, 0]]))
    assert found.strength == pytest.approx([0, 0, 0], abs=1e-9)
    assert (found.circular_triads, found.triads, found.prior_bounded) == (1, 1, 0)
    straight = bradley_terry(contest([[0, 1, 1], [0, 0, 1], [0, 0, 0]]))
    assert (straight.circular_triads, straight.triads) == (0, 1)
    # of the pair that is not decided there is no triple
    tied = bradley_terry(contest([[0, 1, 0.5], [0, 0, 1], [0.5, 0, 0]]))
    assert (tied.circular_triads, tied.triads) == (0, 0)


def test_circular_triads_of_a_complete_tournament() -> None:
    """Kendall & Babington Smith 1940: C(n,3) less the sum of C(wins,2) go in a circle."""
    rng = np.random.default_rng(0)
    upper = np.triu(rng.integers(0, 2, (9, 9)), 1)
    wins = upper + np.tril(1 - upper.T, -1)
    expected = math.comb(9, 3) - sum(math.comb(int(row), 2) for row in wins.sum(axis=1))
    found = bradley_terry(contest(wins))
    assert found.circular_triads == expected > 0
    assert found.triads == math.comb(9, 3)


def test_components_have_strengths_of_their_own() -> None:
    wins = np.zeros((6, 6))
    wins[0, 1] = wins[1, 0] = 1
    wins[0, 1] = 3
    wins[2, 3] = wins[3, 4] = wins[4, 2] = 1  # 5 was never compared
    found = bradley_terry(contest(wins))
    assert found.component.tolist() == [1, 1, 0, 0, 0, -1]
    assert found.components == 2
    alone = bradley_terry(contest(wins[:2, :2]))
    assert found.strength[:2] == pytest.approx(alone.strength)
    assert found.error[:2] == pytest.approx(alone.error)
    assert found.rate[:2] == pytest.approx(alone.rate)
    assert math.isnan(found.rate[5])


def test_errors_are_those_of_repeated_experiments() -> None:
    """Draw answers from known strengths many times: the spread is what the errors say."""
    rng = np.random.default_rng(5)
    truth = np.array([1.0, 0.3, -0.2, -1.1])
    chance = 1 / (1 + np.exp(truth - truth[:, None]))
    games = 40
    found = []
    for _ in range(300):
        won = np.triu(rng.binomial(games, chance), 1)
        wins = won + np.tril(games - won.T, -1)
        found.append(bradley_terry(contest(wins), prior=WIDE))
    spread = np.std([each.strength for each in found], axis=0)
    said = np.mean([each.error for each in found], axis=0)
    assert spread == pytest.approx(said, rel=0.15)
    rates = np.std([each.rate for each in found], axis=0)
    assert rates == pytest.approx(np.mean([each.rate_error for each in found], axis=0), rel=0.15)


def test_gradient_of_the_expected_rates() -> None:
    strength = np.array([0.5, -1.0, 2.0, 0.1])
    rates, slopes = expected_rates(strength)
    for number in range(4):
        moved = strength + 1e-6 * np.eye(4)[number]
        assert (expected_rates(moved)[0] - rates) / 1e-6 == pytest.approx(
            slopes[:, number], abs=1e-5
        )


def test_an_overshooting_newton_step_is_halved() -> None:
    """Few votes about some pairs and many about others: plain Newton never arrives."""
    wins = np.zeros((4, 4))
    wins[0, 1], wins[0, 3], wins[1, 2], wins[1, 3], wins[2, 0] = 0.5, 1000, 1000, 100, 1
    strength, _ = solve(wins, 30.0)
    won = 1 / (1 + np.exp(strength - strength[:, None]))
    slope = wins.sum(axis=1) - ((wins + wins.T) * won).sum(axis=1) - strength / 30**2
    assert np.abs(slope).max() < 1e-6


def test_far_apart_converges() -> None:
    """A long chain of clear wins."""
    wins = np.diag(np.full(39, 50.0), 1)
    strength, _ = solve(wins, 100.0)
    assert np.all(np.diff(strength) < -1)
    slope = wins.sum(axis=1) - ((wins + wins.T) / (1 + np.exp(strength - strength[:, None]))).sum(
        axis=1
    )
    assert np.abs(slope - strength / 100**2).max() < 1e-6
    with pytest.raises(ValueError, match="must be positive"):
        bradley_terry(contest(wins), prior=0)
