"""The rated replies with the scores of some metrics, as columns: what calibration learns from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.estimation.people import single_ratings
from rejoinder.items import Item
from rejoinder.meta_evaluation.join import Joined, numbered
from rejoinder.meta_evaluation.ranking import higher_is_better

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MIN_RATED = 10
"""Rated replies below which nothing can be learnt and tested."""


@dataclass(frozen=True)
class RatedScores:
    """Replies that are rated and that all metrics scored."""

    metrics: list[str]
    signs: Floats
    """[metrics, 1] -1 where lower scores are better."""
    scores: Floats
    """[metrics, n], oriented: higher is better."""
    ratings: Floats
    """[n] the mean rating."""
    single: list[list[float]]
    """[n] the single ratings; an averaged one counts as one."""
    context: Ints
    """[n] number of the context, or of the dialogue: replies that are not independent share it."""
    systems: list[str]
    pool: Floats
    """[n] how near an evaluator's logs are to the context; NaN if the scores don't say."""
    everything: Floats
    """[metrics, all] oriented scores of all replies, rated or not; NaN is unscored."""
    unscored: int = 0
    """Rated replies that some metric could not score."""

    def __len__(self) -> int:
        return len(self.ratings)

    @property
    def contexts(self) -> int:
        return len(np.unique(self.context))

    def take(self, which: NDArray[np.bool_] | Ints) -> RatedScores:
        """Return some of the replies; ``everything`` stays, as it needs no ratings."""
        numbers = np.flatnonzero(which) if which.dtype == bool else which
        return replace(
            self,
            scores=self.scores[:, numbers],
            ratings=self.ratings[numbers],
            single=[self.single[number] for number in numbers.tolist()],
            context=self.context[numbers],
            systems=[self.systems[number] for number in numbers.tolist()],
            pool=self.pool[numbers],
        )

    @classmethod
    def of(cls, joined: Joined, metrics: Sequence[str]) -> RatedScores:
        """Return the rated and scored replies; DataError if there is too little to learn from."""
        signs = np.array([[1.0 if higher_is_better(name) else -1.0] for name in metrics])
        everything = signs * np.array([joined.item_scores[name] for name in metrics])
        rated = ~np.isnan(joined.human)
        if not rated.any():
            raise DataError("no item has ratings; calibration needs the field 'ratings'")
        usable = rated & ~np.isnan(everything).any(axis=0)
        count = int(usable.sum())
        if count < MIN_RATED:
            raise DataError(
                f"{count} of {int(rated.sum()):,} rated items have a score by"
                f" {' and '.join(metrics)}; calibration needs at least {MIN_RATED}"
            )
        chosen = np.flatnonzero(usable)
        items = [joined.items[number] for number in chosen.tolist()]
        ratings = joined.human[chosen]
        if ratings.min() == ratings.max():
            raise DataError(
                f"all {count:,} ratings are {ratings[0]:g}; there is nothing to learn from them"
            )
        constant = [
            name
            for name, row in zip(metrics, everything[:, chosen], strict=True)
            if row.min() == row.max()
        ]
        if constant:
            raise DataError(f"all rated items have the same score by {', '.join(constant)}")
        nearest = np.full(len(joined.items), np.nan)
        for name in metrics:
            known = joined.coverage.get(name, {}).get("nearest")
            if known is not None:
                nearest = np.where(np.isnan(nearest), known, nearest)
        return cls(
            list(metrics),
            signs,
            everything[:, chosen],
            ratings,
            [single_ratings(item) for item in items],
            numbered(independent_group(item) for item in items)[0],
            [item.system for item in items],
            nearest[chosen],
            everything,
            int(rated.sum()) - count,
        )


def independent_group(item: Item) -> str:
    """Return the name of the replies that are not independent of an item: those of its dialogue,
    or to its context."""
    return item.group if item.dialogue_id is None else f"(dialogue {item.dialogue_id})"
