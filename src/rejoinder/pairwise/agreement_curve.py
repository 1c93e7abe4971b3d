"""Agreement within and between annotators as a function of the share of judged pairs.

Figure 2 of Sugiyama, Meguro & Higashinaka (2019): winning rates from a random share of an
annotator's answers are correlated (Pearson) with the rates from all of that annotator's answers
(within) and from all answers of another annotator (between). Where the first curve becomes flat,
more pairs add little. Correlations are taken over the candidates of one context; the curve is the
mean over contexts, annotators and draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.pairwise.answers import UNNAMED, Comparisons, Floats, Ints
from rejoinder.pairwise.winning_rates import count_wins
from rejoinder.progress import Progress

SHARES = (0.02, 0.04, 0.06, 0.08, 0.1, 0.12, 0.16, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
MIN_CANDIDATES = 3
"""Candidates that a context needs for a correlation."""


@dataclass(frozen=True)
class AgreementPoint:
    """Agreement from a share of the answers: means and standard deviations over draws."""

    share: float
    pairs: float
    """Average number of answers of an annotator about a context."""
    within: float | None
    """Correlation with the annotator's own complete winning rates."""
    within_std: float | None
    between: float | None
    """Correlation with another annotator's complete rates; None with one annotator."""
    between_std: float | None


def agreement_curve(
    comparisons: Comparisons,
    *,
    shares: Sequence[float] = SHARES,
    draws: int = 20,
    seed: int = 12345,
    on_progress: Progress | None = None,
) -> list[AgreementPoint]:
    """Return a point for each share of the answers that each annotator gave about a context."""
    table = _AnswerTable.of(comparisons)
    whole = table.rates(np.ones(len(table.annotator), bool))
    curve = []
    for number, share in enumerate(shares):
        # all answers can be drawn in one way only
        times = draws if share < 1 else 1
        rows, pairs = [], 0.0
        for draw in range(times):
            keep = table.draw(share, np.random.default_rng([seed, number, draw]))
            pairs += keep.sum() / max(table.groups, 1) / times
            part = table.rates(keep)
            rows.append((table.within(part, whole), table.between(part, whole)))
        within, between = np.array(rows).T
        curve.append(AgreementPoint(share, pairs, *_mean_std(within), *_mean_std(between)))
        if on_progress is not None:
            on_progress(number + 1, len(shares))
    return curve


@dataclass(frozen=True)
class _AnswerTable:
    """Answers of identified annotators, grouped by annotator and context."""

    annotator: Ints
    first: Ints
    second: Ints
    won: Floats
    weight: Floats
    group: Ints
    """[answers] the number of the answer's annotator and context."""
    groups: int
    context: Ints
    """[candidates]"""
    annotators: int

    @classmethod
    def of(cls, comparisons: Comparisons) -> _AnswerTable:
        named = comparisons.annotator != UNNAMED
        if not named.any():
            raise DataError(
                "no answer names its annotator; agreement within and between annotators needs"
                " the field 'annotator'"
            )
        context = comparisons.context
        annotator, first = comparisons.annotator[named], comparisons.first[named]
        key = annotator * len(comparisons.contexts) + context[first]
        distinct, group = np.unique(key, return_inverse=True)
        weight = comparisons.weight[named]
        won = weight * comparisons.outcome[named]
        second = comparisons.second[named]
        return cls(
            annotator,
            first,
            second,
            won,
            weight,
            group.astype(np.int64),
            distinct.size,
            context,
            len(comparisons.annotators),
        )

    def draw(self, share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Draw a share of each group's answers at random, at least one."""
        keys = rng.random(self.group.size)
        order = np.lexsort((keys, self.group))
        sizes = np.bincount(self.group, minlength=self.groups)
        rank = np.empty(self.group.size, np.int64)
        rank[order] = np.arange(self.group.size) - (np.cumsum(sizes) - sizes)[self.group[order]]
        return np.asarray(rank < np.maximum(np.rint(share * sizes), 1)[self.group])

    def rates(self, keep: NDArray[np.bool_]) -> Floats:
        """Return winning rates [annotators, candidates] from these answers; NaN without any."""
        shape = self.annotators, self.context.size
        own = self.annotator[keep] * shape[1]
        first, second = own + self.first[keep], own + self.second[keep]
        rates = count_wins(first, second, self.won[keep], self.weight[keep], shape[0] * shape[1])
        return rates.rate.reshape(shape)

    def within(self, part: Floats, whole: Floats) -> float:
        """Return the mean correlation over annotators and contexts."""
        rows = [self._correlations(x, y) for x, y in zip(part, whole, strict=True)]
        return _mean(np.concatenate(rows))

    def between(self, part: Floats, whole: Floats) -> float:
        """Return the mean correlation over contexts and ordered pairs of annotators."""
        rows = [
            self._correlations(part[one], whole[other])
            for one in range(len(part))
            for other in range(len(part))
            if one != other
        ]
        return _mean(np.concatenate(rows)) if rows else np.nan

    def _correlations(self, x: Floats, y: Floats) -> Floats:
        """Return Pearson's r in each context over the candidates with both values, or NaN."""
        both = ~(np.isnan(x) | np.isnan(y))
        context, x, y = self.context[both], x[both], y[both]
        size = int(self.context.max()) + 1
        count = np.bincount(context, minlength=size)
        mean = [np.bincount(context, v, size) / np.maximum(count, 1) for v in (x, y)]
        x, y = x - mean[0][context], y - mean[1][context]
        xx, yy, xy = (np.bincount(context, v, size) for v in (x * x, y * y, x * y))
        defined = (count >= MIN_CANDIDATES) & (xx > 1e-12) & (yy > 1e-12)
        product = np.where(defined, np.sqrt(xx * yy), 1)
        return np.asarray(np.where(defined, xy / product, np.nan))


def _mean(values: Floats) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")


def _mean_std(values: Floats) -> tuple[float | None, float | None]:
    """Return mean and standard deviation; None without defined values."""
    defined = values[~np.isnan(values)]
    if not defined.size:
        return None, None
    return float(defined.mean()), float(defined.std(ddof=1)) if defined.size > 1 else None
