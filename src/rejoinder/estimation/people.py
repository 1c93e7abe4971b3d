"""Who rated, on which scale, and how far they agree; ratings on different scales are refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rejoinder.errors import DataError
from rejoinder.items import Item
from rejoinder.meta_evaluation.agreement import krippendorff_alpha
from rejoinder.meta_evaluation.join import Floats
from rejoinder.meta_evaluation.ratings import compact_rating_table
from rejoinder.wording import option

MIN_RATINGS = 10
"""Ratings of a person from which the range of the scale is believed."""
MIN_STEPS = 3
"""Different ratings of a person from which the same holds; 0 and 1 are a scale of their own."""
TIMES = 2.0
"""How many times as high the highest rating of one scale is than that of another."""
CHANCE = 1e-6
"""If both used one scale alike, ratings that are all so low would be less probable than this."""


@dataclass(frozen=True)
class People:
    """Those who rated the replies."""

    number: int | None
    """None if the items don't say who rated."""
    ratings: int
    """Single ratings; an averaged one counts as one."""
    low: float
    high: float
    """The scale: what was given, or the lowest and the highest rating."""
    alpha: float | None
    """Krippendorff's alpha, ordinal; None for one person, or if no reply was rated twice."""

    @classmethod
    def of(cls, items: Sequence[Item], scale: tuple[float, float] | None) -> People:
        """Read the ratings; DataError if they are not on one scale."""
        everything = [rating for item in items for rating in single_ratings(item)]
        by_person = _by_person(items)
        unidentified = any(
            not isinstance(item.ratings, dict) and single_ratings(item) for item in items
        )
        check_one_scale(items, scale)
        number = None if unidentified else len(by_person)
        low, high = scale or (min(everything), max(everything))
        alpha = None if number == 1 else _alpha(items)
        return cls(number, len(everything), low, high, alpha)


def single_ratings(item: Item) -> list[float]:
    """Return the ratings of a reply one by one; an averaged one counts as one."""
    match item.ratings:
        case dict() as by_annotator:
            return list(by_annotator.values())
        case list() as unidentified:
            return list(unidentified)
        case number:
            return [] if number is None else [float(number)]


def check_scale(ratings: Sequence[float], low: float, high: float) -> None:
    """Raise DataError if a rating is not on the scale."""
    for rating in ratings:
        if not low <= rating <= high:
            raise DataError(
                f"a rating is {rating:g}, which is not on the scale from {low:g} to {high:g}"
            )


def check_one_scale(
    items: Sequence[Item], scale: tuple[float, float] | None, *, can_be_stated: bool = True
) -> None:
    """Raise DataError if a rating is not on the ``scale``, or, without one, if two people used
    different scales, as far as their ratings show it.

    ``can_be_stated``: whether the verb has a parameter that says that it is one scale.
    """
    if scale is not None:
        check_scale([rating for item in items for rating in single_ratings(item)], *scale)
        return
    people = _by_person(items)
    ranges = {}
    for name, ratings in people.items():
        values = set(ratings)
        if len(ratings) >= MIN_RATINGS and (len(values) >= MIN_STEPS or values == {0.0, 1.0}):
            ranges[name] = (min(values), max(values))
    if len(ranges) < 2:
        return
    lowest = min(ranges, key=lambda name: ranges[name][1])
    highest = max(ranges, key=lambda name: ranges[name][1])
    (a, b), (c, d) = ranges[lowest], ranges[highest]
    higher = float(np.mean([rating > b for rating in people[highest]]))
    # a strict person on the same scale may give no high rating to a few replies
    if b > 0 and d >= TIMES * b and (1 - higher) ** len(people[lowest]) < CHANCE:
        raise DataError(
            f"the ratings of '{lowest}' go from {a:g} to {b:g}, those of '{highest}' from {c:g} to"
            f" {d:g}: ratings on different scales can't be averaged. Bring them to one scale, or"
            " use one of them"
            + f"; if it is one scale, give it with {option('scale')}"
            * can_be_stated
        )


def _by_person(items: Sequence[Item]) -> dict[str, list[float]]:
    """Return the ratings of each person who has a name."""
    found: dict[str, list[float]] = {}
    for item in items:
        if isinstance(item.ratings, dict):
            for name, rating in item.ratings.items():
                found.setdefault(name, []).append(rating)
    return found


def _alpha(items: Sequence[Item]) -> float | None:
    table: Floats = compact_rating_table(items)
    several = table.shape[0] > 1 and not np.isnan(table[1]).all()
    return krippendorff_alpha(table) if several else None
