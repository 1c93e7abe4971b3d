"""What the ratings so far decide, in intervals that may be looked at all the time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rejoinder.estimation.estimates import CONFIDENCE, rated_replies
from rejoinder.estimation.planning import Question
from rejoinder.estimation.prediction_powered import Floats, Means, Target, estimate_means
from rejoinder.estimation.sequential import anytime_p, anytime_quantile
from rejoinder.items import Item

Interval = tuple[float, float]


@dataclass(frozen=True)
class Look:
    """A mean, or a difference between two systems, as far as it is known now."""

    a: str
    b: str | None
    """The other system of a difference; None for the mean of ``a``."""
    estimate: float
    ci: Interval | None
    """The usual interval, for those who look once; None for too few contexts."""
    anytime_ci: Interval | None
    """The interval that holds at all times together; None for too few contexts."""
    anytime_p: float
    """p-value that stays valid at all times, against a difference of 0 (or a mean of 0)."""
    contexts: float
    """Effective number of independent contexts."""
    decided: bool
    """Whether the stop rule is met: the anytime interval excludes 0, or is as narrow as wanted."""


@dataclass(frozen=True)
class StopRule:
    """When a question is answered."""

    question: Question
    confidence: float = CONFIDENCE
    width: float | None = None
    """Width of the anytime interval that suffices. Without it a difference is decided when the
    interval excludes 0, and a mean never."""


def looks(
    items: Sequence[Item],
    scores: Floats | None,
    systems: Sequence[str],
    rule: StopRule,
    *,
    target: Target = "contexts",
) -> list[Look]:
    """Return what the ratings say about the systems; nothing without ratings.

    Of several pairs each interval is made for its share of the permitted errors, so that all
    of them hold together.
    """
    replies, names = rated_replies(items)
    if not replies.rated.size:
        return []
    return looks_at(estimate_means(replies, scores, target=target), names, systems, rule)


def looks_at(
    means: Means, names: Sequence[str], systems: Sequence[str], rule: StopRule
) -> list[Look]:
    """Return the looks at estimated means; see :func:`looks`."""
    numbers = [names.index(system) for system in systems if system in names]
    known = [number for number in numbers if not np.isnan(means.mean[number])]
    several: list[tuple[int, int | None]] = [(number, None) for number in known]
    if rule.question != "mean":
        ranked = sorted(known, key=lambda n: (-means.mean[n], n))
        several = [(a, b) for a, b in combinations(ranked, 2)]
    return list(_looks(means, names, several, rule))


def _looks(
    means: Means, names: Sequence[str], several: Sequence[tuple[int, int | None]], rule: StopRule
) -> Iterator[Look]:
    alpha = (1 - rule.confidence) / max(len(several), 1)
    for a, b in several:
        if b is None:
            estimate = float(means.mean[a])
            low, high = means.interval(a, rule.confidence)
            deviation, freedom = math.sqrt(means.covariance[a, a]), float(means.freedom[a])
        else:
            estimate, low, high, _ = means.difference(a, b, rule.confidence)
            deviation, freedom = means.error_of_difference(a, b)
        contexts = freedom + 1
        certain = bool(means.known[a] and (b is None or means.known[b]))
        usable = deviation > 0 and math.isfinite(deviation)
        reach = anytime_quantile(contexts, 1 - alpha) * deviation if usable else math.inf
        if certain:  # all replies that it is about are rated
            reach = 0.0
        anytime = (estimate - reach, estimate + reach) if math.isfinite(reach) else None
        if anytime is None:
            decided = False
        elif rule.width is not None:
            decided = 2 * reach <= rule.width
        else:
            decided = b is not None and not anytime[0] <= 0 <= anytime[1]
        p = 1.0
        if usable:
            p = anytime_p(estimate / deviation, contexts, confidence=1 - alpha)
        elif certain:
            p = float(estimate == 0)
        yield Look(
            names[a],
            None if b is None else names[b],
            estimate,
            None if math.isnan(low) else (low, high),
            anytime,
            min(1.0, p * max(len(several), 1)),
            contexts,
            decided,
        )
