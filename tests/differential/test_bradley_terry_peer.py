"""Bradley-Terry strengths against choix, with a prior and without, ties and gaps included."""

from __future__ import annotations

import choix
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse.csgraph import connected_components

from rejoinder.pairwise.answers import Contest
from rejoinder.pairwise.bradley_terry import PRIOR, bradley_terry, solve

WIDE = 1e4
"""A prior that tells nothing, where the answers tell enough."""


@st.composite
def tables(draw):
    """Votes in halves, as for ties; many pairs were never compared."""
    size = draw(st.integers(2, 9))
    halves = draw(arrays(np.int64, (size, size), elements=st.integers(0, 4)))
    np.fill_diagonal(halves, 0)
    return halves / 2


def doubled(wins):
    """Who won against whom, one entry for each half vote: choix knows no ties."""
    winner, loser = np.nonzero(wins)
    times = np.rint(2 * wins[winner, loser]).astype(int)
    return list(zip(np.repeat(winner, times), np.repeat(loser, times), strict=True))


def by_choix(wins, prior):
    """choix takes alpha Σ s² off the logarithm of the likelihood. With every vote doubled that is
    alpha/2 Σ s² for one; a normal prior takes off Σ s² / (2 prior²). So alpha is 1 / prior²."""
    return choix.opt_pairwise(len(wins), doubled(wins), alpha=1 / prior**2, tol=1e-12)


@settings(derandomize=True)
@given(tables(), st.sampled_from([0.5, 1.0, PRIOR, 10.0]))
def test_with_a_prior(wins, prior) -> None:
    """The most probable strengths, before each part is moved to an average of 0."""
    assert solve(wins, prior)[0] == pytest.approx(by_choix(wins, prior), abs=1e-6)


@settings(derandomize=True, max_examples=40)
@given(tables())
def test_order_and_distances(wins) -> None:
    """What users see: strengths around the average of a connected part."""
    found = bradley_terry(Contest("c", np.arange(len(wins)), wins))
    peer = by_choix(wins, PRIOR)
    for part in range(found.components):
        own = found.component == part
        assert found.strength[own] == pytest.approx(peer[own] - peer[own].mean(), abs=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_without_a_prior(seed) -> None:
    """The maximum of the likelihood by a way of its own: Luce spectral ranking, repeated."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, 30))
    truth = rng.normal(size=size)
    games = np.triu(rng.integers(0, 9, (size, size)), 1)
    won = rng.binomial(games, 1 / (1 + np.exp(truth - truth[:, None])))
    ties = rng.binomial(games - won, 0.3)
    wins = won + ties / 2
    wins = wins + np.tril((games - won - ties + ties / 2).T, -1)
    # a chain of wins leads from everyone to everyone: the maximum exists (Ford 1957)
    wins += np.roll(np.eye(size), 1, axis=1) / 2
    assert connected_components(wins > 0, connection="strong")[0] == 1
    strength, _ = solve(wins, WIDE)
    peer = choix.ilsr_pairwise(size, doubled(wins), max_iter=1000, tol=1e-12)
    assert strength - strength.mean() == pytest.approx(peer - peer.mean(), abs=1e-5)
