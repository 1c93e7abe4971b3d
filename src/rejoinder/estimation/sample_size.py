"""How many ratings an answer needs: interval widths and power over the number of rated units.

With n rated of N units (contexts, or replies of a system), whose ratings, or differences of
ratings, have the standard deviation s and the correlation r with what the scores predict, the
prediction-powered estimate has the variance

    s² (1 - r²) / n + s² r² / N          of contexts like these
    s² (1 - r²) (1 / n - 1 / N)          of just these replies

Units of a dialogue are not independent. If what the scores leave of two of them has the correlation
c, and a rated unit has on average m others of its dialogue that are rated, the first term of the
mean over contexts is 1 + c m times as large, and Student's t counts dialogues.

s and r come from the ratings so far, or are assumed. The width of an interval is 2 q √variance with
q from Student's t, or for intervals that are looked at all the time from
:mod:`rejoinder.estimation.sequential`; the power to see a difference d is the probability that the
interval excludes 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.stats import nct, t

from rejoinder.estimation.prediction_powered import Floats, Ints, Target
from rejoinder.estimation.sequential import anytime_quantile

MIN_UNITS = 10
"""Rated units from which the deviation is taken from the ratings."""
FEWEST = 1.5
"""Dialogues that are expected to be rated from which there is an interval."""
POINTS = 24
"""Points of a curve."""


@dataclass(frozen=True)
class Spread:
    """How much ratings of units vary, and how well scores predict them."""

    sd: float
    correlation: float
    known_from: int
    """Rated units that it was computed from; 0 if it is assumed."""
    within_dialogues: float = 0.0
    """Correlation, between units of a dialogue, of what the scores leave."""


@dataclass(frozen=True)
class Dialogues:
    """How many units each dialogue has, and how many of them are rated."""

    units: Ints
    rated: Ints
    parts: int = 1
    """Into how many systems, each with its own units, they are divided."""

    def among(self, count: float) -> tuple[float, float]:
        """Return how many dialogues are expected among so many rated units, and how many others of
        its dialogue each has: the units that are rated are the first, the others come at random."""
        wanted, before = count * self.parts, int(self.rated.sum())
        if wanted <= before:
            begun, others, share = np.zeros_like(self.rated), self.rated, wanted / before
        else:
            begun, others = self.rated, self.units - self.rated
            share = min((wanted - before) / max(int(others.sum()), 1), 1.0)
        groups = float(np.where(begun > 0, 1.0, 1 - (1 - share) ** others).sum())
        pairs = begun * (begun - 1) + 2 * begun * others * share + others * (others - 1) * share**2
        return groups / self.parts, float(pairs.sum()) / wanted


@dataclass(frozen=True)
class Columns:
    """Replies as columns [n]."""

    system: Ints
    rating: Floats
    """NaN if the reply is not rated."""
    score: Floats
    """That of an average reply if there is none."""

    def at(self, number: int) -> tuple[float, float]:
        """Return rating and score of a reply."""
        return float(self.rating[number]), float(self.score[number])

    def mean(self, numbers: Sequence[int]) -> tuple[float, float]:
        """Return the mean rating and score of replies."""
        chosen = np.array(numbers)
        return float(self.rating[chosen].mean()), float(self.score[chosen].mean())


@dataclass(frozen=True)
class SizePoint:
    """What so many rated units would tell."""

    units: int
    ratings: int
    width: float
    """Expected width of the interval."""
    anytime_width: float | None
    """Of the interval that may be looked at all the time; None for too few units."""
    power: float | None = None
    """Probability that the interval excludes 0, if the difference is as large as stated."""


@dataclass(frozen=True)
class Needed:
    """Rated units, and ratings, that suffice; None if not even all of them do."""

    units: int | None
    ratings: int | None
    more: int | None
    """Ratings that are still to be made."""


@dataclass(frozen=True)
class Study:
    """What is planned: units that could be rated, and what each costs."""

    units: int
    """Units that there are."""
    ratings_per_unit: float
    spread: Spread
    target: Target = "contexts"
    confidence: float = 0.95
    dialogues: Dialogues | None = None
    """None if each unit is a dialogue of its own."""

    def independent(self, count: float) -> float:
        """Return how many of so many rated units are independent: their dialogues."""
        return count if self.dialogues is None else self.dialogues.among(count)[0]

    def variance(self, count: float) -> float:
        """Return the variance of the estimate with so many rated units."""
        s2, r2 = self.spread.sd**2, self.spread.correlation**2
        if self.target == "replies":
            return max(s2 * (1 - r2) * (1 / count - 1 / self.units), 0.0)
        design = design_of_all = 1.0
        if self.dialogues is not None:
            design += self.spread.within_dialogues * self.dialogues.among(count)[1]
            design_of_all += self.spread.within_dialogues * self.dialogues.among(self.units)[1]
        return s2 * (1 - r2) * design / count + s2 * r2 * design_of_all / self.units

    def width(self, count: int) -> float:
        """Return the expected width of the interval."""
        independent = self.independent(count)
        if independent < FEWEST:
            return math.inf
        quantile = float(t.ppf((1 + self.confidence) / 2, independent - 1))
        return 2 * quantile * math.sqrt(self.variance(count))

    def anytime_width(self, count: int) -> float:
        """Return the expected width of the interval that holds at all times."""
        quantile = anytime_quantile(self.independent(count), self.confidence)
        return 2 * quantile * math.sqrt(self.variance(count))

    def power(self, count: int, difference: float) -> float:
        """Return the probability that the interval excludes 0 at a true difference."""
        freedom = self.independent(count) - 1
        if freedom < FEWEST - 1:
            return 0.0
        deviation = math.sqrt(self.variance(count))
        if not deviation:
            return float(difference != 0)
        quantile = float(t.ppf((1 + self.confidence) / 2, freedom))
        shift = abs(difference) / deviation
        if shift - quantile > 6:  # certain, and beyond what the distribution can be computed for
            return 1.0
        wrong_way = nct.cdf(-quantile, freedom, shift) if shift < 3 else 0.0
        return float(1 - nct.cdf(quantile, freedom, shift) + wrong_way)

    def point(self, count: int, difference: float | None) -> SizePoint:
        anytime = self.anytime_width(count)
        return SizePoint(
            count,
            round(count * self.ratings_per_unit),
            self.width(count),
            anytime if math.isfinite(anytime) else None,
            None if difference is None else self.power(count, difference),
        )

    def curve(self, rated: int, difference: float | None) -> list[SizePoint]:
        """Return points from few units to all of them."""
        first = max(2, min(5, self.units))
        if self.units < 2:
            return []
        grid = np.geomspace(first, self.units, POINTS)
        counts = {round(float(count)) for count in grid} | ({rated} if rated > 1 else set())
        return [self.point(count, difference) for count in sorted(counts)]

    def needed(self, enough: Callable[[int], bool], more: Callable[[int], int]) -> Needed:
        """Return the smallest number of units for which ``enough`` holds, to which ``more`` ratings
        are still to be made."""
        low, high = 2, self.units
        if high < 2 or not enough(high):
            return Needed(None, None, None)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle + 1, high)
        ratings = math.ceil(low * self.ratings_per_unit)
        return Needed(low, ratings, more(low))


def spread_of(
    units: Sequence[Sequence[int]],
    columns: Columns,
    dialogue: Ints | None = None,
    *,
    pairs: bool,
) -> Spread | None:
    """Return how ratings of units vary, and how well scores predict them; None if too few units are
    rated, or all ratings are equal.

    ``dialogue`` is the number of the dialogue of each unit; without it, units are independent.
    ``pairs`` is about differences between systems that replied to the same context, else about
    single replies; means of systems, and of pairs, are taken out. The squared correlation is
    corrected for its bias, 1 - (1 - r²) (n - 1) / (n - 2), as even useless scores correlate with
    few ratings.
    """
    values: dict[tuple[int, ...], list[tuple[float, float]]] = {}
    places: dict[tuple[int, ...], list[int]] = {}
    rated = 0
    for unit, members in enumerate(units):
        own = [number for number in members if not np.isnan(columns.rating[number])]
        by_system: dict[int, list[int]] = {}
        for number in own:
            by_system.setdefault(int(columns.system[number]), []).append(number)
        rated += len(by_system) > 1 if pairs else bool(own)
        if not pairs:
            for system, numbers in by_system.items():
                values.setdefault((system,), []).extend(map(columns.at, numbers))
                places.setdefault((system,), []).extend([unit] * len(numbers))
            continue
        for a, b in combinations(sorted(by_system), 2):
            first, second = columns.mean(by_system[a]), columns.mean(by_system[b])
            values.setdefault((a, b), []).append((first[0] - second[0], first[1] - second[1]))
            places.setdefault((a, b), []).append(unit)
    if rated < MIN_UNITS:
        return None
    several = [key for key, each in values.items() if len(each) > 1]
    centred = [np.array(values[key]) - np.mean(values[key], axis=0) for key in several]
    freedom = sum(len(each) - 1 for each in centred)
    if not freedom:
        return None
    y, x = np.concatenate(centred).T
    yy, xx, xy = float(y @ y), float(x @ x), float(x @ y)
    if not yy > 0:
        return None
    squared = xy * xy / (xx * yy) if xx > 0 and xy > 0 else 0.0
    share = max(1 - (1 - squared) * (rated - 1) / (rated - 2), 0.0)
    within = 0.0
    if dialogue is not None:
        slope = xy / xx if squared else 0.0
        within = _within(
            [each @ (1, -slope) for each in centred], [dialogue[places[k]] for k in several]
        )
    return Spread(math.sqrt(yy / freedom), math.sqrt(share), rated, within)


def _within(values: Sequence[Floats], dialogue: Sequence[Ints]) -> float:
    """Return the correlation between values of a dialogue, by the analysis of variance of each
    array, all together: (B - W) / (B + (m - 1) W), with B and W the mean squares between and within
    dialogues, and m = (n - Σ mᵢ² / n) / (dialogues - 1)."""
    between = inside = free_between = free_inside = size = 0.0
    for own, place in zip(values, dialogue, strict=True):
        _, number, count = np.unique(place, return_inverse=True, return_counts=True)
        means = np.bincount(number, own) / count
        between += float(count @ (means - own.mean()) ** 2)
        inside += float(((own - means[number]) ** 2).sum())
        free_between += len(count) - 1
        free_inside += len(own) - len(count)
        size += len(own) - float(count @ count) / len(own)
    if not (free_between and free_inside):
        return 0.0
    b, w, m = between / free_between, inside / free_inside, size / free_between
    total = b + (m - 1) * w
    return min(max((b - w) / total, 0.0), 1.0) if total > 0 else 0.0
