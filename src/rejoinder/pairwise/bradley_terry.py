"""Bradley-Terry: every reply has a strength, and the stronger one is preferred more often.

    P(i is preferred to j) = 1 / (1 + exp(strength_j - strength_i))      (Bradley & Terry 1952)

A win against a strong reply tells more than one against a weak one, so strengths need fewer
comparisons than winning rates, above all when pairs are chosen (plan.py). A tie is half a win for
either. Newton's method finds the strengths that are most probable; their standard errors come from
the inverse of the information at that point.

A reply that always wins would be infinitely strong. So strengths have a prior, a normal
distribution with the standard deviation PRIOR: it hardly moves what comparisons tell, and keeps
the others finite. Replies that no chain of comparisons connects are not comparable: each connected
part has strengths around 0 of its own, and ``part`` says which one a reply is in.

So that strengths can stand for winning rates, ``rate`` is the winning rate that is expected if all
pairs of the part were judged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from rejoinder.pairwise.answers import Contest, Floats, Ints

PRIOR = 3.0
"""Standard deviation of strengths before anything is known. At one from the middle, a reply is
preferred to an average one 19 times out of 20."""

MOST_STEPS = 100
CLOSE = 1e-15
"""Where a step is to rise by less than this share of the height, the summit is reached."""
TINY = 1e-9


@dataclass(frozen=True)
class Strengths:
    """Of the replies to one context [n]; NaN where nobody compared one."""

    strength: Floats
    """The average of a connected part is 0."""
    error: Floats
    """Standard error of a strength, against the average of its part."""
    rate: Floats
    """Expected winning rate against all others of its part."""
    rate_error: Floats
    covariance: Floats
    """[n, n] of strengths, prior included: what is left to learn."""
    part: Ints
    """Number of the connected part, 0 for that with the most replies; -1 without comparison."""
    bounded: int
    """How many replies only the prior keeps finite: they, or the group they are in, always won, or
    always lost, against the rest of their part."""
    circles: int
    """Triples in which each is preferred to the next, around."""
    triples: int
    """Triples of which all three pairs have a clear answer."""

    @property
    def parts(self) -> int:
        return int(self.part.max(initial=-1)) + 1


def bradley_terry(contest: Contest, *, prior: float = PRIOR) -> Strengths:
    """The strengths of the replies to one context."""
    if not 0 < prior < np.inf:
        raise ValueError(f"the prior's standard deviation must be above 0, got {prior}")
    games = contest.games
    most_probable, covariance = solve(contest.wins, prior)
    part = _parts(games)
    compared = part >= 0
    same = (part[:, np.newaxis] == part) & compared
    sizes = np.maximum(same.sum(axis=1), 1)
    centre = np.eye(len(part)) - same / sizes[:, np.newaxis]
    strength = centre @ most_probable
    rate, slopes = expected_rates(strength, same)
    circles, triples = _circles(contest.wins)

    def known(values: Floats) -> Floats:
        return np.where(compared, values, np.nan)

    return Strengths(
        known(strength),
        known(_spread(centre, covariance)),
        known(rate),
        known(_spread(slopes, covariance)),
        covariance,
        part,
        _bounded(contest.wins, part),
        circles,
        triples,
    )


def solve(wins: Floats, prior: float = PRIOR) -> tuple[Floats, Floats]:
    """The most probable strengths [n], and the inverse of the information there [n, n].

    The logarithm of the posterior has one summit. Newton's steps lead there, halved where a whole
    one would jump over it and land lower.
    """
    posterior = _Posterior.of(wins, prior)
    strength = np.zeros(len(wins))
    height = posterior.height(strength)
    for _ in range(MOST_STEPS):
        slope, information = posterior.landscape(strength)
        step = np.linalg.solve(information, slope)
        rise = float(slope @ step)
        part = 1.0
        while (reached := posterior.height(strength + part * step)) < height and part > TINY:
            part /= 2
        strength, height = strength + part * step, reached
        if rise <= CLOSE * (1 + abs(height)):
            break
    information = posterior.landscape(strength)[1]
    return strength, np.asarray(np.linalg.inv(information), np.float64)


@dataclass(frozen=True)
class _Posterior:
    """How probable strengths are, from those pairs of a winner and a loser that there are."""

    winner: Ints
    loser: Ints
    votes: Floats
    size: int
    precision: float

    @classmethod
    def of(cls, wins: Floats, prior: float) -> _Posterior:
        winner, loser = np.nonzero(wins)
        return cls(winner, loser, wins[winner, loser], len(wins), 1 / prior**2)

    def height(self, strength: Floats) -> float:
        """The logarithm, but for a constant."""
        told = self.votes @ np.logaddexp(0, strength[self.loser] - strength[self.winner])
        return -float(told) - self.precision * float(strength @ strength) / 2

    def landscape(self, strength: Floats) -> tuple[Floats, Floats]:
        """The slope of the height, and its curvature downwards: the information."""
        surprise = expit(strength[self.loser] - strength[self.winner])
        pull = self.votes * surprise
        slope = np.bincount(self.winner, pull, self.size) - np.bincount(self.loser, pull, self.size)
        told = np.zeros((self.size, self.size))
        told[self.winner, self.loser] = pull * (1 - surprise)
        told += told.T
        information = np.diag(told.sum(axis=1) + self.precision) - told
        return slope - self.precision * strength, information


def expected_rates(strength: Floats, same: Floats | None = None) -> tuple[Floats, Floats]:
    """Winning rates if all pairs were judged [n], and how they change with the strengths [n, n].

    ``same`` marks pairs that are comparable; by default all are.
    """
    others = np.ones((strength.size, strength.size)) if same is None else same.astype(float)
    others = others * (1 - np.eye(strength.size))
    expected = expit(strength[:, np.newaxis] - strength)
    count = np.maximum(others.sum(axis=1, keepdims=True), 1)
    change = others * expected * (1 - expected) / count
    rates = (others * expected / count).sum(axis=1)
    return rates, np.diag(change.sum(axis=1)) - change


def _spread(rows: Floats, covariance: Floats) -> Floats:
    """Standard deviations of ``rows @ strengths``."""
    return np.asarray(np.sqrt(np.maximum(((rows @ covariance) * rows).sum(axis=1), 0)))


def _parts(games: Floats) -> Ints:
    """The connected part of each reply, the largest first; -1 for one without comparison."""
    _, labels = connected_components(csr_array(games > 0), directed=False)
    sizes = np.bincount(labels, minlength=1)
    order = np.argsort(-sizes, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return np.where(games.sum(axis=1) > 0, rank[labels], -1).astype(np.int64)


def _bounded(wins: Floats, part: Ints) -> int:
    """Replies outside the largest group, in each part, of those that reach each other by a chain
    of wins. Where one group has them all, strengths are finite without a prior (Ford 1957)."""
    _, group = connected_components(csr_array(wins > 0), connection="strong")
    found = 0
    for number in range(int(part.max(initial=-1)) + 1):
        own = group[part == number]
        found += own.size - int(np.bincount(own).max())
    return found


def _circles(wins: Floats) -> tuple[int, int]:
    """Triples in a circle, and all triples whose pairs are decided."""
    beats = (wins > wins.T).astype(np.float64)
    decided = beats + beats.T
    circles = ((beats @ beats) * beats.T).sum() / 3
    triples = ((decided @ decided) * decided).sum() / 6
    return round(float(circles)), round(float(triples))
