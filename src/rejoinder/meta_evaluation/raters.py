"""Whose ratings can be trusted, and a set of items without the ratings of some people.

Ratings are ordinal, so kappa has quadratic weights. A distractor that somebody rates is set against
each other reply that they rated: the share of these that it is rated above (a tie is a half) does
not depend on how they use the scale. Who rates at random, or always alike, has 1/2.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.items import Item
from rejoinder.meta_evaluation.agreement import (
    MOST_CATEGORIES,
    krippendorff_alpha,
    mean_known,
    mean_of_pairs,
    pairwise_kappas,
)
from rejoinder.meta_evaluation.annotators import (
    DISTRACTOR,
    Agreement,
    Annotator,
    Bad,
    Limits,
    bad_ones,
)
from rejoinder.meta_evaluation.humans import FEWEST, MOST_ANNOTATORS, TOO_MANY, rating_table
from rejoinder.meta_evaluation.join import Floats
from rejoinder.meta_evaluation.roc import auc

FONDNESS = "rated {planted} distractors above {share:.0%} of the other replies"
TOO_FINE = f"more than {MOST_CATEGORIES:,} different ratings have no kappa"


@dataclass(frozen=True)
class Raters:
    """Those who rated a set of items, by name; nobody where ratings name nobody."""

    names: list[str]
    ratings: int
    """How many they gave."""
    agreement: Agreement
    bad: list[Bad]

    @classmethod
    def of(cls, items: Sequence[Item], limits: Limits, distractor: str = DISTRACTOR) -> Raters:
        names, table = rating_table(items)
        if not names:
            return cls([], 0, Agreement([], None, None), [])
        rated = ~np.isnan(table)
        kappas, why = _kappas(table)
        # few items in common are too few for a word on one annotator, not for all together
        own = kappas if why is not None else np.where(_common(rated) >= FEWEST, kappas, np.nan)
        planted = np.array([item.system == distractor for item in items], bool)
        each = [
            Annotator(
                name,
                int(rated[number].sum()),
                mean_known(own[number]) if why is None else None,
                int((rated[number] & planted).sum()),
                _preferred(table[number], planted),
            )
            for number, name in enumerate(names)
        ]
        alpha = krippendorff_alpha(table, "ordinal")
        found = Agreement(each, mean_of_pairs(kappas), alpha, why)
        bad = bad_ones(found, names, own, limits, FONDNESS)
        return cls(names, int(rated.sum()), found, bad)


@dataclass(frozen=True)
class Sifted:
    """A set of items without the ratings of those who are left out."""

    before: Raters
    bad: list[Bad]
    """Of those who were not to be left out anyway."""
    dropped: list[str]
    items: list[Item]
    after: Raters | None
    """None where nobody is left out."""

    @classmethod
    def of(
        cls,
        items: Sequence[Item],
        limits: Limits,
        names: Sequence[str] = (),
        *,
        drop_bad: bool = False,
        distractor: str = DISTRACTOR,
    ) -> Sifted:
        """Leave out these annotators and, if asked to, those who are bad among the others."""
        before = Raters.of(items, limits, distractor)
        kept = without_ratings(items, names)
        bad = Raters.of(kept, limits, distractor).bad if names else before.bad
        dropped = list(dict.fromkeys([*names, *(b.name for b in bad if drop_bad)]))
        if not dropped:
            return cls(before, bad, [], list(items), None)
        kept = without_ratings(items, dropped)
        if all(item.ratings is None for item in kept):
            raise DataError("no ratings are left when these annotators are left out")
        return cls(before, bad, dropped, kept, Raters.of(kept, limits, distractor))


def without_ratings(items: Sequence[Item], names: Collection[str]) -> list[Item]:
    """The items without what these people said; whom nobody else rated is not rated."""
    return [_without(item, names) for item in items]


def _without(item: Item, names: Collection[str]) -> Item:
    if not isinstance(item.ratings, dict) or not any(name in item.ratings for name in names):
        return item
    kept = {name: rating for name, rating in item.ratings.items() if name not in names}
    return msgspec.structs.replace(item, ratings=kept or None)


def _kappas(table: Floats) -> tuple[Floats, str | None]:
    """[annotators, annotators], or nothing and the reason."""
    if len(table) > MOST_ANNOTATORS:
        return np.zeros((0, 0)), TOO_MANY
    if np.unique(table[~np.isnan(table)]).size > MOST_CATEGORIES:
        return np.zeros((0, 0)), TOO_FINE
    return pairwise_kappas(table, weights="quadratic"), None


def _common(rated: NDArray[np.bool_]) -> Floats:
    """[annotators, annotators] how many items each two rated."""
    table = rated.astype(np.float64)
    return table @ table.T


def _preferred(ratings: Floats, planted: NDArray[np.bool_]) -> float | None:
    """None for one who did not rate both kinds."""
    rated = ~np.isnan(ratings)
    distractors, others = ratings[rated & planted], ratings[rated & ~planted]
    return auc(distractors, others) if distractors.size and others.size else None
