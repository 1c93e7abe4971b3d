"""What ``am`` and ``ws`` share: the m references that are most similar to the reply."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rejoinder.metrics.batch import Batch, Floats, Ints
from rejoinder.metrics.metric import Reasons, check_range
from rejoinder.metrics.regression.contexts import Context
from rejoinder.metrics.regression.estimator import Estimator

MOST = 10**6


@dataclass(frozen=True, kw_only=True)
class NearestEstimator(Estimator):
    """An average over the most similar references, each with a factor."""

    m: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("m", self.m, 1, MOST)

    def estimate(
        self, batch: Batch, every: Iterable[Context], values: Floats, reasons: Reasons
    ) -> None:
        from rejoinder.kernels.nearness import nearest_mean

        for context in every:
            similarity = context.similarity.mean(axis=0)
            found: list[tuple[int, Ints]] = []
            for place in range(len(context.items)):
                own = slice(context.first[place], context.first[place + 1])
                reason = self.refused(context.weight[own])
                if reason is not None:
                    reasons[context.items[place]] = reason
                elif (seen := self.seen(context, place, reasons)) is not None:
                    found.append((place, seen))
            if not found:
                continue
            places = np.array([place for place, _ in found], np.int64)
            seen = np.concatenate([seen for _, seen in found])
            counts = [len(seen) for _, seen in found]
            nearest = similarity[np.repeat(context.reply[places], counts), context.column[seen]]
            first = np.cumsum([0, *counts])
            factor = self.factor(context.weight[seen])
            values[context.items[places]] = nearest_mean(nearest, factor, first, self.m)

    def refused(self, weight: Floats) -> str | None:
        """Why references with these weights can't be used; None if they can."""
        return None

    def factor(self, weight: Floats) -> Floats:
        """What a similarity counts, by the weight of the reference."""
        return np.ones_like(weight)
