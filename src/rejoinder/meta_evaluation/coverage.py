"""Correlation with people by how well an evaluator's pool covers the contexts.

An evaluator may be reliable in the domain of its logs only. Items are sorted by coverage and cut
into thirds of equal size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rejoinder.meta_evaluation.correlate import Correlations, correlate_many
from rejoinder.meta_evaluation.join import Joined

THIRDS = ("lowest", "middle", "highest")
MIN_ITEMS = 9
"""Items needed for correlations of thirds."""


@dataclass(frozen=True)
class CoverageThird:
    """Correlation of a metric with people over the items of one third."""

    metric: str
    by: str
    """Kind of coverage, ``nearest`` or ``agreement``; see rejoinder.evaluator.coverage."""
    third: str
    low: float
    high: float
    correlations: Correlations


def by_coverage(joined: Joined, resamples: int, seed: int) -> list[CoverageThird]:
    """Return correlations by third for each metric whose scores have coverage, and each kind."""
    thirds = []
    for name in joined.order:
        for kind, coverage in joined.coverage.get(name, {}).items():
            scores = joined.item_scores[name]
            defined = np.flatnonzero(~np.isnan(joined.human) & ~np.isnan(scores + coverage))
            if len(defined) < MIN_ITEMS:
                continue
            # items of equal coverage, such as replies to one context, stay in the order of the file
            order = defined[np.argsort(coverage[defined], kind="stable")]
            for third, chosen in zip(THIRDS, np.array_split(order, len(THIRDS)), strict=True):
                (correlations,) = correlate_many(
                    scores[chosen][np.newaxis],
                    joined.human[chosen],
                    clusters=joined.contexts[chosen],
                    resamples=resamples,
                    seed=seed,
                )
                low, high = float(coverage[chosen[0]]), float(coverage[chosen[-1]])
                thirds.append(CoverageThird(name, kind, third, low, high, correlations))
    return thirds
