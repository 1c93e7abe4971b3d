"""Winning rates: how often a reply was preferred to another one of its context.

A tie is half a win. With every pair judged this is the score of Sugiyama, Meguro & Higashinaka
(2019, section 2.2): 1 for a reply that is preferred to all others, 0 for one that never is. With
some of the pairs judged it estimates the same number.

The standard error is that of a share, sqrt(p (1 - p) / n), with two wins and two losses added to
p and n (Agresti & Coull 1998): a reply that won its three comparisons is not known to win them all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rejoinder.pairwise.answers import Comparisons, Floats, Ints


@dataclass(frozen=True)
class Rates:
    """For each candidate [n]; NaN where nobody compared it."""

    rate: Floats
    error: Floats
    """Standard error."""
    votes: Floats
    """How many votes it is from."""


def winning_rates(comparisons: Comparisons) -> Rates:
    """The rates of all candidates, from all answers together."""
    won = comparisons.weight * comparisons.outcome
    ends = comparisons.first, comparisons.second
    return counted(*ends, won, comparisons.weight, len(comparisons.candidates))


def counted(first: Ints, second: Ints, won: Floats, weight: Floats, size: int) -> Rates:
    """The rates of ``size`` replies from answers about two each: how much of its ``weight`` the
    first ``won``; the rest is the second one's."""
    wins, votes = np.zeros(size), np.zeros(size)
    for item, gained in ((first, won), (second, weight - won)):
        wins += np.bincount(item, gained, size)
        votes += np.bincount(item, weight, size)
    return rates_of(wins, votes)


def rates_of(wins: Floats, votes: Floats) -> Rates:
    """Rates from sums."""
    known = votes > 0
    rate = np.divide(wins, votes, out=np.full(votes.size, np.nan), where=known)
    cautious = (wins + 2) / (votes + 4)
    error = np.sqrt(cautious * (1 - cautious) / (votes + 4))
    return Rates(np.clip(rate, 0, 1), np.where(known, error, np.nan), votes)


def weight_of(rate: float) -> float:
    """A winning rate as the weight of a reference, from -1 to 1."""
    return 2 * rate - 1
