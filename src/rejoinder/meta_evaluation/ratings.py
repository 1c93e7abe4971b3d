"""Human ratings of items as tables, and items with other or fewer ratings."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import UsageError
from rejoinder.items import Item, Ratings
from rejoinder.spec import did_you_mean

Floats = NDArray[np.float64]

MAX_CELLS = 50_000_000
"""Cells of a table of annotators and items; a larger one would need more than 400 MB."""


def annotator_names(items: Sequence[Item]) -> list[str]:
    """Return the names of the identified annotators, in the order in which they appear."""
    names: dict[str, None] = {}
    for item in items:
        if isinstance(item.ratings, dict):
            names.update(dict.fromkeys(item.ratings))
    return list(names)


def rating_table(items: Sequence[Item]) -> tuple[list[str], Floats]:
    """Return the identified annotators and their ratings [annotators, items]; NaN is not rated."""
    names = annotator_names(items)
    row = {name: number for number, name in enumerate(names)}
    table = np.full((len(names), len(items)), np.nan)
    for column, item in enumerate(items):
        if isinstance(item.ratings, dict):
            for name, rating in item.ratings.items():
                table[row[name], column] = rating
    return names, table


def compact_rating_table(items: Sequence[Item]) -> Floats:
    """Return all ratings [most ratings of an item, items]; NaN fills up.

    Krippendorff's alpha does not depend on which annotator gave which rating.
    """
    lists = [_values(item) for item in items]
    table = np.full((max(map(len, lists), default=0), len(items)), np.nan)
    for column, ratings in enumerate(lists):
        table[: len(ratings), column] = ratings
    return table


def _values(item: Item) -> list[float]:
    if isinstance(item.ratings, dict):
        return list(item.ratings.values())
    return list(item.ratings) if isinstance(item.ratings, list) else []


def merged_ratings(first: Ratings, second: Ratings) -> Ratings:
    """Return two records of ratings of the same thing as one; None if they contradict."""
    if first == second:
        return first
    if isinstance(first, dict) and isinstance(second, dict):
        both = first | second
        return both if all(both[name] == rating for name, rating in first.items()) else None
    return None


def without_annotators(items: Sequence[Item], names: Collection[str]) -> list[Item]:
    """Return the items without the ratings of these annotators."""
    return [_without(item, names) for item in items]


def _without(item: Item, names: Collection[str]) -> Item:
    if not isinstance(item.ratings, dict) or not any(name in item.ratings for name in names):
        return item
    kept = {name: rating for name, rating in item.ratings.items() if name not in names}
    return msgspec.structs.replace(item, ratings=kept or None)


def label_by_system(items: Sequence[Item], correct: Collection[str]) -> list[Item]:
    """Return the items with the rating 1 for replies of the ``correct`` systems and 0 for others.

    This replaces ratings where there are none: the reply that a person really gave is correct, a
    reply from another dialogue is not. A metric that cannot tell the two apart needs no further
    test.
    """
    systems = sorted({item.system for item in items})
    if unknown := [name for name in correct if name not in systems]:
        hints = (f"{name}: {did_you_mean(name, systems)}" for name in unknown)
        raise UsageError(*(f"right: no reply is of the system {hint}" for hint in hints))
    if items and set(systems) <= set(correct):
        raise UsageError(f"right: {', '.join(systems)}: no system is left whose replies are wrong")
    return [msgspec.structs.replace(item, ratings=float(item.system in correct)) for item in items]
