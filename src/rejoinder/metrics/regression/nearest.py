"""Base class of ``am`` and ``ws``: averages over the m references most similar to the reply."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.metrics.batch import Batch, Floats, Ints
from rejoinder.metrics.metric import check_range
from rejoinder.metrics.reasons import Reasons
from rejoinder.metrics.regression.contexts import Context
from rejoinder.metrics.regression.estimator import Estimator

MAX_M = 10**6


@dataclass(frozen=True, kw_only=True)
class NearestEstimator(Estimator):
    """An average over the most similar references, each with a factor."""

    replies_only: ClassVar[bool] = True

    m: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("m", self.m, 1, MAX_M)

    def estimate(
        self, batch: Batch, every: Iterable[Context], values: Floats, reasons: Reasons
    ) -> None:
        from rejoinder.kernels.reference_similarity import nearest_reference_mean

        for context in every:
            similarity = context.similarity.mean(axis=0)
            scorable: list[tuple[int, Ints]] = []
            for place in range(len(context.items)):
                own = slice(context.first[place], context.first[place + 1])
                reason = self.refused(context.weight[own])
                if reason is not None:
                    reasons[context.items[place]] = reason
                elif (compared := self.references_to_compare(context, place, reasons)) is not None:
                    scorable.append((place, compared))
            if not scorable:
                continue
            places = np.array([place for place, _ in scorable], np.int64)
            compared = np.concatenate([compared for _, compared in scorable])
            counts = [len(compared) for _, compared in scorable]
            nearest = similarity[np.repeat(context.reply[places], counts), context.column[compared]]
            first = np.cumsum([0, *counts])
            factor = self.factor(context.weight[compared])
            values[context.items[places]] = nearest_reference_mean(nearest, factor, first, self.m)

    def refused(self, weight: Floats) -> str | None:
        """Return why references with these weights cannot be used, or None."""
        return None

    def factor(self, weight: Floats) -> Floats:
        """Return the factors of similarities to references with these weights."""
        return np.ones_like(weight)
