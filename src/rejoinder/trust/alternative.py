"""The alternative-annotator test: may this judge stand in for one of the annotators?

Calderon, Reichart and Dror 2025, "The Alternative Annotator Test for LLM-as-a-Judge". Each
annotator in turn is left out. On each reply that they rated, the judge and the annotator are
compared with the others who rated it:

    S(v) = -sqrt(mean over the others of (v - rating)²)        or, for categories,
    S(v) = share of the others who gave the rating v

The judge has the advantage where S(judge) >= S(annotator), the annotator where S(annotator) >=
S(judge); a tie is both. rho(judge) and rho(annotator) are the shares of replies with an advantage.
The hypothesis that rho(judge) <= rho(annotator) - epsilon is tested with a one-sided t-test, where
epsilon is what the judge may be worse because it costs less. p-values are adjusted by Benjamini and
Yekutieli (2001). The winning rate omega is the share of annotators for whom the hypothesis is
rejected: from 1/2 on, the judge may stand in. The mean of rho(judge) over annotators is the
advantage probability, which compares judges.

Replies to one context are not independent, so the standard error is that of sums over contexts
(Liang & Zeger 1986), with contexts - 1 degrees of freedom; where each reply has its own context,
this is the t-test of the paper.

By the root of the mean squared error, the best value is the mean of everybody's ratings: a judge
who always says the same may win against annotators who hardly agree with each other. So the same
test of that constant is reported, too: where it passes, the test tells nothing about a judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rejoinder.meta_evaluation.annotators import Resampling
from rejoinder.meta_evaluation.correlate import Estimate
from rejoinder.meta_evaluation.significance import benjamini_yekutieli
from rejoinder.trust.resampled import estimate_of_sums

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Alignment = Literal["rmse", "accuracy"]

EPSILON = 0.1
"""What the paper recommends for crowd workers; .15 for skilled annotators, .2 for experts."""
ALPHA = 0.05
"""False discovery rate."""
MIN_ANNOTATORS = 3
MIN_REPLIES = 30
"""Replies that an annotator must have rated together with others, as in the paper."""
ENOUGH = 0.5
"""Winning rate from which on the judge may stand in for an annotator."""
TOLERANCE = 1e-9
"""Errors this close are the same."""


@dataclass(frozen=True)
class AgainstAnnotator:
    """The judge against one annotator, both held against the other annotators."""

    annotator: str
    n: int
    judge: float
    """Share of replies on which the judge is at least as near to the others: rho."""
    human: float
    """Share on which the annotator is."""
    p: float
    """One-sided, of the hypothesis that the judge is worse by at least epsilon."""
    adjusted: float
    won: bool


@dataclass(frozen=True)
class AlternativeTest:
    """Whether a judge may stand in for an annotator."""

    alignment: Alignment
    epsilon: float
    mapped: bool
    """Whether scores were mapped to the scale of people first, by cross-fitting."""
    annotators: list[AgainstAnnotator]
    left_out: int
    """Annotators who rated too few replies together with others."""
    winning_rate: float
    """omega."""
    advantage: Estimate
    """Mean of rho over annotators, with an interval resampled by context."""
    passed: bool


def alternative_test(
    names: Sequence[str],
    table: Floats,
    values: Floats,
    contexts: Ints,
    *,
    alignment: Alignment,
    epsilon: float = EPSILON,
    mapped: bool = False,
    resampling: Resampling,
) -> AlternativeTest | None:
    """Test ``values`` [n] against the annotators of ``table`` [annotators, n]; NaN is no rating.

    None if fewer than three annotators rated enough replies together with others.
    """
    rows, tested = [], []
    scored = ~np.isnan(values)
    rated = ~np.isnan(table)
    shared = rated.sum(axis=0) > 1
    for number, name in enumerate(names):
        own = np.flatnonzero(rated[number] & scored & shared)
        if len(own) < MIN_REPLIES or len(np.unique(contexts[own])) < 2:
            continue
        others = table[:, own]
        others[number] = np.nan
        of_judge = _alignment(values[own], others, alignment)
        of_human = _alignment(table[number, own], others, alignment)
        judge = (of_judge >= of_human - TOLERANCE).astype(np.float64)
        human = (of_human >= of_judge - TOLERANCE).astype(np.float64)
        p = not_worse_p(judge - human, contexts[own], epsilon)
        rows.append((name, len(own), float(judge.mean()), float(human.mean()), p))
        tested.append((own, judge))
    if len(rows) < MIN_ANNOTATORS:
        return None
    adjusted = benjamini_yekutieli([p for *_, p in rows]).tolist()
    each = [
        AgainstAnnotator(*row, adjusted=p, won=p <= ALPHA)
        for row, p in zip(rows, adjusted, strict=True)
    ]
    winning = sum(one.won for one in each) / len(each)
    return AlternativeTest(
        alignment,
        epsilon,
        mapped,
        each,
        len(names) - len(each),
        winning,
        _advantage(tested, contexts, resampling),
        winning >= ENOUGH,
    )


def not_worse_p(lead: Floats, contexts: Ints, epsilon: float) -> float:
    """Return the one-sided p of the hypothesis that the mean ``lead`` is at most -epsilon."""
    from scipy.special import stdtr

    number = np.unique(contexts, return_inverse=True)[1]
    groups = int(number.max()) + 1
    mean = float(lead.mean())
    sums = np.bincount(number, lead - mean, minlength=groups)
    error = float(np.sqrt(groups / (groups - 1) * (sums**2).sum()) / lead.size)
    distance = mean + epsilon
    if error <= TOLERANCE:
        return 0.0 if distance > 0 else 1.0
    return float(stdtr(groups - 1, -distance / error))


def _alignment(values: Floats, others: Floats, alignment: Alignment) -> Floats:
    """Return how near each value [n] is to the ratings of the others [annotators, n]."""
    if alignment == "accuracy":
        same = np.where(np.isnan(others), np.nan, np.abs(others - values) < TOLERANCE)
        return np.asarray(np.nanmean(same, axis=0))
    return np.asarray(-np.sqrt(np.nanmean((others - values) ** 2, axis=0)))


def _advantage(
    tested: Sequence[tuple[Ints, Floats]], contexts: Ints, resampling: Resampling
) -> Estimate:
    """Return the mean of rho over annotators; replies to one context are drawn together."""
    m = len(tested)
    rows = np.zeros((len(contexts), 2 * m))
    for number, (own, judge) in enumerate(tested):
        rows[own, number] = judge
        rows[own, m + number] = 1

    def finish(sums: Floats) -> Floats:
        rho = sums[..., :m] / sums[..., m:]
        return np.asarray(rho.mean(axis=-1))

    used = np.flatnonzero(rows[:, m:].any(axis=1))
    return estimate_of_sums(rows[used], contexts[used], finish, resampling)
