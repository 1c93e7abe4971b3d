"""Bradley-Terry: every reply has a strength, and the stronger reply is preferred more often.

    P(i is preferred to j) = 1 / (1 + exp(strength_j - strength_i))      (Bradley & Terry 1952)

A win against a strong reply counts more than one against a weak reply, so strengths need fewer
comparisons than winning rates, above all when pairs are chosen adaptively (plan.py). A tie is half
a win for both. Strengths are the maximum a posteriori (MAP) estimate, found by Newton's method;
standard errors come from the inverse of the information matrix at the maximum.

A reply that always wins would be infinitely strong. So strengths have a normal prior with mean 0
and standard deviation PRIOR: it hardly moves strengths that the comparisons determine, and keeps
the others finite. Replies that no chain of comparisons connects are not comparable: the strengths
of each connected component have mean 0, and ``component`` gives the component of a reply.

To be used like winning rates, strengths are also given as ``rate``: the expected winning rate if
all pairs of the component were judged.

Why not choix (0.4.1, measured on one core): with the same prior and tolerance, its exact estimator
``opt_pairwise`` takes 31 ms, .69 s and 2.5 s for 20, 100 and 300 replies with 190, 2,000 and 12,000
comparisons, this module .2, 1 and 9 ms; both agree to 1e-7 (tests/differential), and the gradient
at our maximum is smaller. choix has no ties and no weights (every vote must be doubled), gives no
standard errors, and its faster ``ilsr_pairwise`` and ``mm_pairwise`` regularise differently.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from rejoinder.pairwise.answers import Contest, Floats, Ints

PRIOR = 3.0
"""Standard deviation of the prior. A reply one standard deviation above the mean is preferred to
an average reply 19 times out of 20."""

MAX_STEPS = 100
TOLERANCE = 1e-15
"""Relative gain of a Newton step below which the maximum is reached."""
MIN_STEP = 1e-9


@dataclass(frozen=True)
class Strengths:
    """Strengths of the replies to one context [n]; NaN for a reply without comparison."""

    strength: Floats
    """The mean of a connected component is 0."""
    error: Floats
    """Standard error of a strength relative to the mean of its component."""
    rate: Floats
    """Expected winning rate against all other replies of the component."""
    rate_error: Floats
    covariance: Floats
    """[n, n] posterior covariance of the strengths."""
    component: Ints
    """Connected component, 0 is the largest; -1 without comparison."""
    prior_bounded: int
    """Replies whose strength only the prior keeps finite: they, or a group that they belong to,
    always won, or always lost, against the rest of their component."""
    circular_triads: int
    """Triads a, b, c in which a is preferred to b, b to c and c to a."""
    triads: int
    """Triads in which all three pairs have a clear winner."""

    @property
    def components(self) -> int:
        """Number of connected components."""
        return int(self.component.max(initial=-1)) + 1


def bradley_terry(contest: Contest, *, prior: float = PRIOR) -> Strengths:
    """Return the strengths of the replies to one context."""
    if not 0 < prior < np.inf:
        raise ValueError(f"the prior's standard deviation must be positive and finite, got {prior}")
    mode, covariance = solve(contest.wins, prior)
    component = _components(contest.games)
    compared = component >= 0
    same = (component[:, np.newaxis] == component) & compared
    sizes = np.maximum(same.sum(axis=1), 1)
    centre = np.eye(len(component)) - same / sizes[:, np.newaxis]
    strength = centre @ mode
    rate, gradient = expected_rates(strength, same)
    circular, triads = _circular_triads(contest.wins)

    def defined(values: Floats) -> Floats:
        return np.where(compared, values, np.nan)

    return Strengths(
        defined(strength),
        defined(_standard_errors(centre, covariance)),
        defined(rate),
        defined(_standard_errors(gradient, covariance)),
        covariance,
        component,
        _prior_bounded(contest.wins, component),
        circular,
        triads,
    )


def rate_errors(wins: Floats, prior: float = PRIOR) -> Floats:
    """Return the standard error of the expected winning rate of each reply to one context [n].

    In contrast to :func:`bradley_terry`, all replies count as comparable, also those that no
    answer connects: their errors are those of the prior, and large. So the mean of the errors says
    when enough pairs were asked.
    """
    strength, covariance = solve(wins, prior)
    return _standard_errors(expected_rates(strength)[1], covariance)


def solve(wins: Floats, prior: float = PRIOR) -> tuple[Floats, Floats]:
    """Return the MAP strengths [n] and the inverse of the information matrix there [n, n].

    The log posterior is concave, so Newton's method converges to its one maximum; a step that
    would overshoot is halved.
    """
    posterior = _Posterior.of(wins, prior)
    strength = np.zeros(len(wins))
    value = posterior.log_density(strength)
    for _ in range(MAX_STEPS):
        gradient, information = posterior.derivatives(strength)
        step = np.linalg.solve(information, gradient)
        gain = float(gradient @ step)
        scale = 1.0
        while (
            reached := posterior.log_density(strength + scale * step)
        ) < value and scale > MIN_STEP:
            scale /= 2
        strength, value = strength + scale * step, reached
        if gain <= TOLERANCE * (1 + abs(value)):
            break
    information = posterior.derivatives(strength)[1]
    return strength, np.asarray(np.linalg.inv(information), np.float64)


@dataclass(frozen=True)
class _Posterior:
    """Posterior of the strengths, from the pairs of a winner and a loser that occur."""

    winner: Ints
    loser: Ints
    votes: Floats
    size: int
    precision: float

    @classmethod
    def of(cls, wins: Floats, prior: float) -> _Posterior:
        winner, loser = np.nonzero(wins)
        return cls(winner, loser, wins[winner, loser], len(wins), 1 / prior**2)

    def log_density(self, strength: Floats) -> float:
        """Return the logarithm of the posterior density, up to a constant."""
        loss = self.votes @ np.logaddexp(0, strength[self.loser] - strength[self.winner])
        return -float(loss) - self.precision * float(strength @ strength) / 2

    def derivatives(self, strength: Floats) -> tuple[Floats, Floats]:
        """Return the gradient and the negative Hessian (information) of the log density."""
        upset = expit(strength[self.loser] - strength[self.winner])
        pull = self.votes * upset
        gradient = np.bincount(self.winner, pull, self.size)
        gradient = gradient - np.bincount(self.loser, pull, self.size)
        weights = np.zeros((self.size, self.size))
        weights[self.winner, self.loser] = pull * (1 - upset)
        weights += weights.T
        information = np.diag(weights.sum(axis=1) + self.precision) - weights
        return gradient - self.precision * strength, information


def expected_rates(strength: Floats, same: Floats | None = None) -> tuple[Floats, Floats]:
    """Return winning rates if all pairs were judged [n], and their gradient by strength [n, n].

    ``same`` marks pairs that are comparable; by default all are.
    """
    comparable = np.ones((strength.size, strength.size)) if same is None else same.astype(float)
    comparable = comparable * (1 - np.eye(strength.size))
    expected = expit(strength[:, np.newaxis] - strength)
    count = np.maximum(comparable.sum(axis=1, keepdims=True), 1)
    change = comparable * expected * (1 - expected) / count
    rates = (comparable * expected / count).sum(axis=1)
    return rates, np.diag(change.sum(axis=1)) - change


def _standard_errors(rows: Floats, covariance: Floats) -> Floats:
    """Return the standard deviations of ``rows @ strengths``."""
    return np.asarray(np.sqrt(np.maximum(((rows @ covariance) * rows).sum(axis=1), 0)))


def _components(games: Floats) -> Ints:
    """Return the connected component of each reply, the largest first; -1 without comparison."""
    _, labels = connected_components(csr_array(games > 0), directed=False)
    sizes = np.bincount(labels, minlength=1)
    order = np.argsort(-sizes, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return np.where(games.sum(axis=1) > 0, rank[labels], -1).astype(np.int64)


def _prior_bounded(wins: Floats, component: Ints) -> int:
    """Count the replies outside the largest strongly connected group of each component.

    Replies are strongly connected if each reaches the other by a chain of wins. If one group has
    all replies, strengths are finite without a prior (Ford 1957).
    """
    _, group = connected_components(csr_array(wins > 0), connection="strong")
    count = 0
    for number in range(int(component.max(initial=-1)) + 1):
        own = group[component == number]
        count += own.size - int(np.bincount(own).max())
    return count


def _circular_triads(wins: Floats) -> tuple[int, int]:
    """Return the number of circular triads, and of all triads whose pairs are decided."""
    beats = (wins > wins.T).astype(np.float64)
    decided = beats + beats.T
    circular = ((beats @ beats) * beats.T).sum() / 3
    triads = ((decided @ decided) * decided).sum() / 6
    return round(float(circular)), round(float(triads))
