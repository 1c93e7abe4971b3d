"""Winning rates: how often a reply was preferred to another reply to the same context.

A tie is half a win. With every pair judged this is the score of Sugiyama, Meguro & Higashinaka
(2019, section 2.2): 1 for a reply that is preferred to all others, 0 for one that never is. With
some of the pairs judged it estimates the same number.

The standard error is that of a proportion, sqrt(p (1 - p) / n), with two wins and two losses added
to p and n (Agresti & Coull 1998), so that three wins out of three do not have an error of 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rejoinder.pairwise.answers import Comparisons, Floats, Ints


@dataclass(frozen=True)
class WinningRates:
    """Winning rates of candidates [n]; NaN for a candidate without comparison."""

    rate: Floats
    error: Floats
    """Standard error."""
    votes: Floats
    """Number of votes behind the rate."""


def winning_rates(comparisons: Comparisons) -> WinningRates:
    """Return the winning rates of all candidates from all answers."""
    won = comparisons.weight * comparisons.outcome
    pair = comparisons.first, comparisons.second
    return count_wins(*pair, won, comparisons.weight, len(comparisons.candidates))


def count_wins(first: Ints, second: Ints, won: Floats, weight: Floats, size: int) -> WinningRates:
    """Return the winning rates of ``size`` replies from answers about two replies each.

    ``won`` is the part of an answer's ``weight`` that the first reply won; the second has the rest.
    """
    wins, votes = np.zeros(size), np.zeros(size)
    for item, gained in ((first, won), (second, weight - won)):
        wins += np.bincount(item, gained, size)
        votes += np.bincount(item, weight, size)
    return rates_of(wins, votes)


def rates_of(wins: Floats, votes: Floats) -> WinningRates:
    """Return winning rates from summed wins and votes."""
    voted = votes > 0
    rate = np.divide(wins, votes, out=np.full(votes.size, np.nan), where=voted)
    adjusted = (wins + 2) / (votes + 4)
    error = np.sqrt(adjusted * (1 - adjusted) / (votes + 4))
    return WinningRates(np.clip(rate, 0, 1), np.where(voted, error, np.nan), votes)


def reference_weight(rate: float) -> float:
    """Return the weight of a reference, from -1 to 1, for a winning rate."""
    return 2 * rate - 1
