"""Agreement of the weights of references with people's ratings of the same references.

An evaluator gives every reference that it retrieves a weight. If people rate the same references,
the correlation shows whether its rater judges them as people do (Tsuta, Yoshinaga & Toyoda 2023,
Table 6).

References are matched by context and text. Replies of several systems to a context share its
references, so that each counts once; if its weight differs between items, it is their mean.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.items import UNNAMED, Item, Ratings
from rejoinder.meta_evaluation.annotators import correlation_with_annotators
from rejoinder.meta_evaluation.correlate import correlate
from rejoinder.meta_evaluation.evaluation import MetaSettings, MetricResult, why_undefined
from rejoinder.meta_evaluation.join import numbered
from rejoinder.meta_evaluation.ratings import merged_ratings

Floats = NDArray[np.float64]

WEIGHT = "weight"
SAME = 1e-9
"""A correlation this close to 1 is a copy."""


@dataclass
class RatedContexts:
    """The rated references of items, by context and text."""

    ratings: dict[tuple[str, str], Ratings] = field(default_factory=dict)
    sources: dict[tuple[str, str], str] = field(default_factory=dict)
    _by_id: dict[str, Item] = field(default_factory=dict)

    @classmethod
    def of(cls, items: Iterable[Item]) -> RatedContexts:
        """Collect the rated references; DataError if there are none."""
        found = cls()
        for item in items:
            found._by_id[item.id] = item
            for reference in item.references:
                if reference.rating() is None:
                    continue
                key = item.group, reference.text
                if key in found.ratings:
                    found.ratings[key] = _merged(found.ratings[key], reference.ratings, item, key)
                else:
                    found.ratings[key] = reference.ratings
                    found.sources[key] = reference.source or UNNAMED
        if not found.ratings:
            raise DataError(
                "no reference has ratings; expected references as objects with 'text' and 'ratings'"
            )
        return found

    def context_of(self, item: Item) -> str:
        """Return the context of an item of another file: that of the same id, or its own."""
        same = self._by_id.get(item.id)
        if same is not None and (
            not item.context or not same.context or item.context == same.context
        ):
            return same.group
        return item.group


def _merged(first: Ratings, second: Ratings, item: Item, key: tuple[str, str]) -> Ratings:
    """Return the ratings of a reference that several items of a context have."""
    if (both := merged_ratings(first, second)) is not None:
        return both
    raise DataError(
        f"the reference '{key[1][:60]}' of the item '{item.id}' has other ratings than at another"
        " item of the same context; expected the same ratings at all of them"
    )


@dataclass(frozen=True)
class WeightedReferences:
    """The rated references that have a weight, and counts of the others."""

    items: list[Item]
    """Each reference as an item: its text is the response, its source the system."""
    weights: Floats
    unmatched: int
    """Rated references that the weighted items do not have."""
    unweighted: int
    """Rated references that have no weight there."""
    unrated: int
    """References with a weight that nobody rated."""

    @classmethod
    def of(cls, rated: RatedContexts, items: Iterable[Item]) -> WeightedReferences:
        """Look the weights of the rated references up in ``items``."""
        weights: dict[tuple[str, str], list[float]] = {}
        unrated: set[tuple[str, str]] = set()
        for item in items:
            context = rated.context_of(item)
            for reference in item.references:
                key = context, reference.text
                if key in rated.ratings:
                    own = weights.setdefault(key, [])
                    own += [] if reference.weight is None else [reference.weight]
                elif reference.weight is not None:
                    unrated.add(key)
        chosen = [key for key in rated.ratings if weights.get(key)]
        if not weights:
            raise DataError(
                f"none of the {len(rated.ratings):,} rated references is among the references of"
                " these items; references are matched by the id or the context of their item, and"
                " by their text"
            )
        if not chosen:
            raise DataError(
                "the rated references have no weights here; expected items that an evaluator"
                " expanded, or references with 'weight'"
            )
        return cls(
            [
                Item(
                    str(number),
                    text,
                    system=rated.sources[context, text],
                    ratings=rated.ratings[context, text],
                    context_id=context,
                )
                for number, (context, text) in enumerate(chosen)
            ],
            np.array([np.mean(weights[key]) for key in chosen]),
            len(rated.ratings) - len(weights),
            len(weights) - len(chosen),
            len(unrated),
        )

    @property
    def contexts(self) -> int:
        """Number of contexts of the references."""
        return len({item.group for item in self.items})


def correlate_weights(items: list[Item], weights: Floats, settings: MetaSettings) -> MetricResult:
    """Correlate weights with the mean rating, and with single annotators.

    Items without ratings are left out. Intervals are resampled by context.
    """
    ratings = [item.rating() for item in items]
    human = np.array([np.nan if rating is None else rating for rating in ratings])
    rated = ~np.isnan(human)
    contexts, _ = numbered(item.group for item in items)
    return MetricResult(
        WEIGHT,
        "reference",
        0,
        correlate(
            weights[rated],
            human[rated],
            clusters=contexts[rated],
            resamples=settings.resamples,
            seed=settings.seed,
        ),
        annotators=correlation_with_annotators(items, weights),
        undefined=why_undefined(weights[rated], human[rated]),
    )


def are_copies(result: MetricResult) -> bool:
    """Return whether the weights are a linear function of the mean ratings."""
    pearson = result.correlations.pearson.value
    return pearson is not None and pearson > 1 - SAME
