"""Agreement in and between annotators as a function of the share of judged pairs.

Figure 2 of Sugiyama, Meguro & Higashinaka (2019): winning rates from some of an annotator's
answers, drawn at random, are correlated (Pearson) with the rates from all of them, and with those
from all of another annotator's. Where the first curve becomes flat, people may stop. A correlation
is that of the candidates of one context; the curve is the mean over contexts, annotators and draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.pairwise.answers import UNNAMED, Comparisons, Floats, Ints
from rejoinder.pairwise.rates import counted
from rejoinder.progress import Progress

SHARES = (0.02, 0.04, 0.06, 0.08, 0.1, 0.12, 0.16, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
FEWEST = 3
"""Candidates without which a correlation says nothing."""


@dataclass(frozen=True)
class Point:
    """Agreement with a share of the answers: mean, and standard deviation over draws."""

    share: float
    pairs: float
    """Answers of an annotator about a context, on average."""
    inside: float | None
    """Correlation with the annotator's own rates."""
    inside_spread: float | None
    between: float | None
    """Correlation with another annotator's rates; None with one annotator."""
    between_spread: float | None


def share_curve(
    comparisons: Comparisons,
    *,
    shares: Sequence[float] = SHARES,
    draws: int = 20,
    seed: int = 12345,
    on_progress: Progress | None = None,
) -> list[Point]:
    """A point for each share of the answers that each annotator gave about a context."""
    table = _Table.of(comparisons)
    whole = table.rates(np.ones(len(table.who), bool))
    curve = []
    for number, share in enumerate(shares):
        # all answers can be drawn in one way only
        times = draws if share < 1 else 1
        rows, used = [], 0.0
        for draw in range(times):
            keep = table.drawn(share, np.random.default_rng([seed, number, draw]))
            used += keep.sum() / max(table.groups, 1) / times
            part = table.rates(keep)
            rows.append((table.inside(part, whole), table.between(part, whole)))
        inside, between = np.array(rows).T
        curve.append(Point(share, used, *_summary(inside), *_summary(between)))
        if on_progress is not None:
            on_progress(number + 1, len(shares))
    return curve


@dataclass(frozen=True)
class _Table:
    """Answers of identified annotators, grouped by annotator and context."""

    who: Ints
    first: Ints
    second: Ints
    won: Floats
    weight: Floats
    group: Ints
    """[answers] the number of its annotator and context."""
    groups: int
    context: Ints
    """[candidates]"""
    annotators: int

    @classmethod
    def of(cls, comparisons: Comparisons) -> _Table:
        named = comparisons.annotator != UNNAMED
        if not named.any():
            raise DataError("no answer names its annotator; agreement in and between needs names")
        context = comparisons.context
        who, first = comparisons.annotator[named], comparisons.first[named]
        key = who * len(comparisons.contexts) + context[first]
        found, group = np.unique(key, return_inverse=True)
        weight = comparisons.weight[named]
        won = weight * comparisons.outcome[named]
        second = comparisons.second[named]
        return cls(
            who,
            first,
            second,
            won,
            weight,
            group.astype(np.int64),
            found.size,
            context,
            len(comparisons.annotators),
        )

    def drawn(self, share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
        """A share of each group's answers, at least one: those with the lowest lots."""
        lots = rng.random(self.group.size)
        order = np.lexsort((lots, self.group))
        sizes = np.bincount(self.group, minlength=self.groups)
        rank = np.empty(self.group.size, np.int64)
        rank[order] = np.arange(self.group.size) - (np.cumsum(sizes) - sizes)[self.group[order]]
        return np.asarray(rank < np.maximum(np.rint(share * sizes), 1)[self.group])

    def rates(self, keep: NDArray[np.bool_]) -> Floats:
        """[annotators, candidates] winning rates from these answers; NaN without any."""
        shape = self.annotators, self.context.size
        own = self.who[keep] * shape[1]
        first, second = own + self.first[keep], own + self.second[keep]
        found = counted(first, second, self.won[keep], self.weight[keep], shape[0] * shape[1])
        return found.rate.reshape(shape)

    def inside(self, part: Floats, whole: Floats) -> float:
        """Mean over annotators and contexts."""
        rows = [self._correlations(x, y) for x, y in zip(part, whole, strict=True)]
        return _mean(np.concatenate(rows))

    def between(self, part: Floats, whole: Floats) -> float:
        """Mean over contexts and ordered pairs of annotators."""
        rows = [
            self._correlations(part[one], whole[other])
            for one in range(len(part))
            for other in range(len(part))
            if one != other
        ]
        return _mean(np.concatenate(rows)) if rows else np.nan

    def _correlations(self, x: Floats, y: Floats) -> Floats:
        """Pearson's in each context, over the candidates that have both; NaN where undefined."""
        both = ~(np.isnan(x) | np.isnan(y))
        context, x, y = self.context[both], x[both], y[both]
        size = int(self.context.max()) + 1
        count = np.bincount(context, minlength=size)
        mean = [np.bincount(context, v, size) / np.maximum(count, 1) for v in (x, y)]
        x, y = x - mean[0][context], y - mean[1][context]
        xx, yy, xy = (np.bincount(context, v, size) for v in (x * x, y * y, x * y))
        defined = (count >= FEWEST) & (xx > 1e-12) & (yy > 1e-12)
        product = np.where(defined, np.sqrt(xx * yy), 1)
        return np.asarray(np.where(defined, xy / product, np.nan))


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def _summary(values: Floats) -> tuple[float | None, float | None]:
    """Mean and standard deviation; None where there is nothing."""
    known = values[~np.isnan(values)]
    if not known.size:
        return None, None
    return float(known.mean()), float(known.std(ddof=1)) if known.size > 1 else None
