"""Agreement with people by how well an evaluator's logs cover the contexts.

An evaluator may be right about what its logs are about, and know nothing of the rest. Items are
sorted by coverage and cut into three parts of equal size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rejoinder.meta_evaluation.correlate import Correlations, correlate_many
from rejoinder.meta_evaluation.join import Joined

THIRDS = ("lowest", "middle", "highest")
FEWEST = 9
"""Items: thirds of fewer have no correlation worth the name."""


@dataclass(frozen=True)
class Third:
    """A metric's agreement with people over the items of one third."""

    metric: str
    by: str
    """``nearest`` or ``agreement``; see rejoinder.evaluator.coverage."""
    third: str
    low: float
    high: float
    correlations: Correlations


def by_coverage(joined: Joined, resamples: int, seed: int) -> list[Third]:
    """For each metric that came with coverage, each kind of it, and each third, the correlation."""
    found = []
    for name in joined.order:
        for kind, coverage in joined.coverage.get(name, {}).items():
            scores = joined.item_scores[name]
            known = np.flatnonzero(~np.isnan(joined.human) & ~np.isnan(scores + coverage))
            if len(known) < FEWEST:
                continue
            # equal coverage, such as that of replies to one context, in the order of the file
            order = known[np.argsort(coverage[known], kind="stable")]
            for third, chosen in zip(THIRDS, np.array_split(order, len(THIRDS)), strict=True):
                (correlations,) = correlate_many(
                    scores[chosen][np.newaxis],
                    joined.human[chosen],
                    clusters=joined.contexts[chosen],
                    resamples=resamples,
                    seed=seed,
                )
                low, high = float(coverage[chosen[0]]), float(coverage[chosen[-1]])
                found.append(Third(name, kind, third, low, high, correlations))
    return found
