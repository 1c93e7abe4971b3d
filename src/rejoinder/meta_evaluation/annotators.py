"""Inter-annotator agreement, and which annotators are unreliable.

Agreement between people is the ceiling for every metric. An annotator is unreliable who hardly
agrees with the others, or who prefers planted distractors: replies known to be bad. This module
handles ratings; rejoinder.pairwise.annotators does the same for comparisons of two replies.

Ratings are ordinal, so Cohen's kappa has quadratic weights. A distractor is compared with every
other reply that the same annotator rated: the share of replies that it is rated above (a tie counts
half) does not depend on how the annotator uses the scale. Random or constant ratings give 1/2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.items import Item
from rejoinder.meta_evaluation.agreement import (
    MAX_CATEGORIES,
    alpha_interval,
    kappa_interval,
    krippendorff_alpha,
    mean_defined,
    mean_of_pairs,
    mean_pairwise_kappa,
    pairwise_kappas,
)
from rejoinder.meta_evaluation.agreement_sums import Interval
from rejoinder.meta_evaluation.correlate import STATISTICS, Columns, weighted
from rejoinder.meta_evaluation.join import numbered
from rejoinder.meta_evaluation.ratings import (
    MAX_CELLS,
    Floats,
    annotator_names,
    compact_rating_table,
    rating_table,
    without_annotators,
)
from rejoinder.meta_evaluation.roc import auc

DISTRACTOR = "distractor"
"""Default name of the system whose replies are planted distractors."""
MIN_DISTRACTORS = 5
"""Fewer judgements of distractors than this are not held against an annotator."""
MIN_COMMON = 10
"""Items that two annotators must share before their agreement is reported: the extremes over many
annotators with a handful of items each are noise."""
MAX_ANNOTATORS = 200
"""Above this annotators are not compared in pairs, whose number grows with the square."""
TOO_MANY = f"more than {MAX_ANNOTATORS} annotators are not compared one by one"
TOO_FINE = f"kappa is not defined for more than {MAX_CATEGORIES:,} different ratings"
RATED_HIGH = "rated {count} distractors above {share:.0%} of the other replies"


@dataclass(frozen=True)
class Resampling:
    """Number and seed of the bootstrap resamples behind intervals; 0 resamples: no interval."""

    resamples: int = 1000
    seed: int = 12345


RESAMPLING = Resampling()


@dataclass(frozen=True)
class Annotator:
    """One annotator, with the evidence for or against their judgements."""

    name: str
    answers: int
    """Number of ratings, or of comparisons."""
    kappa: float | None
    """Mean Cohen's kappa with each other annotator; None with too few judgements in common."""
    planted: int
    """Number of judgements about a distractor."""
    preferred: float | None
    """Share of comparisons in which a distractor was preferred to another reply; a tie is 1/2."""


@dataclass(frozen=True)
class AnnotatorAgreement:
    """Agreement of several annotators."""

    annotators: list[Annotator]
    kappa: float | None
    """Cohen's kappa with quadratic weights, mean over pairs of annotators."""
    alpha: float | None
    """Krippendorff's alpha, ordinal."""
    left_out: str | None = None
    """Why kappa was not computed."""
    kappa_ci: Interval | None = None
    """95 % interval, resampled by context."""
    alpha_ci: Interval | None = None


@dataclass(frozen=True)
class AnnotatorLimits:
    """Limits beyond which an annotator is unreliable; None switches a limit off."""

    min_kappa: float | None = None
    max_distractor: float | None = None


@dataclass(frozen=True)
class UnreliableAnnotator:
    """An annotator whose judgements should be left out."""

    name: str
    reason: str
    by: Literal["distractors", "kappa"]
    """Which limit it is about."""


def find_unreliable(
    agreement: AnnotatorAgreement,
    names: Sequence[str],
    kappas: Floats,
    limits: AnnotatorLimits,
    distractor_reason: str,
) -> list[UnreliableAnnotator]:
    """Return annotators who prefer distractors too often, then those whose kappa is too low.

    ``kappas`` [names, names] has the kappa of each two annotators, NaN where undefined.
    ``distractor_reason`` is formatted with the ``share`` and ``count`` of distractors.

    One unreliable annotator lowers the kappa of all others, so the one with the lowest kappa is
    removed and the rest is computed again. Two who disagree are both kept, because nothing tells
    which of them is wrong.
    """
    unreliable: list[UnreliableAnnotator] = []
    if limits.max_distractor is not None:
        for one in agreement.annotators:
            if one.planted >= MIN_DISTRACTORS and (one.preferred or 0) > limits.max_distractor:
                reason = distractor_reason.format(share=one.preferred, count=one.planted)
                unreliable.append(UnreliableAnnotator(one.name, reason, "distractors"))
    if limits.min_kappa is None or agreement.left_out is not None:
        return unreliable
    kappas = kappas.copy()
    removed = [names.index(each.name) for each in unreliable]
    while True:
        kappas[removed], kappas[:, removed] = np.nan, np.nan
        compared = np.flatnonzero((~np.isnan(kappas)).any(axis=1))
        if compared.size < 3:
            return unreliable
        means = np.nanmean(kappas[compared], axis=1)
        lowest = int(np.argmin(means))
        if means[lowest] >= limits.min_kappa:
            return unreliable
        removed.append(int(compared[lowest]))
        reason = f"kappa with the others is {means[lowest]:.2f}"
        unreliable.append(UnreliableAnnotator(names[removed[-1]], reason, "kappa"))


@dataclass(frozen=True)
class AnnotatorReview:
    """The identified annotators of a set of items; empty if ratings name no annotator."""

    names: list[str]
    ratings: int
    """Number of ratings."""
    agreement: AnnotatorAgreement
    unreliable: list[UnreliableAnnotator]

    @classmethod
    def of(
        cls,
        items: Sequence[Item],
        limits: AnnotatorLimits,
        distractor: str = DISTRACTOR,
        resampling: Resampling = RESAMPLING,
    ) -> AnnotatorReview:
        """Review the annotators of ``items``; ``distractor`` names the system of distractors."""
        names = annotator_names(items)
        if not names:
            return cls([], 0, AnnotatorAgreement([], None, None), [])
        planted = np.array([item.system == distractor for item in items], bool)
        if _too_large(names, items):
            return _review_many(names, items, planted, limits, resampling)
        names, table = rating_table(items)
        rated = ~np.isnan(table)
        kappas, why = _kappas(table)
        # too few items in common are not held against one annotator, but count in the mean
        own = kappas if why is not None else np.where(_common(rated) >= MIN_COMMON, kappas, np.nan)
        each = [
            Annotator(
                name,
                int(rated[number].sum()),
                mean_defined(own[number]) if why is None else None,
                int((rated[number] & planted).sum()),
                _distractor_share(table[number], planted),
            )
            for number, name in enumerate(names)
        ]
        alpha = krippendorff_alpha(table, "ordinal")
        intervals = _intervals(table, items, resampling, kappa=why is None)
        agreement = AnnotatorAgreement(each, mean_of_pairs(kappas), alpha, why, **intervals)
        unreliable = find_unreliable(agreement, names, own, limits, RATED_HIGH)
        return cls(names, int(rated.sum()), agreement, unreliable)


def _too_large(names: Sequence[str], items: Sequence[Item]) -> bool:
    return len(names) > MAX_ANNOTATORS and len(names) * len(items) > MAX_CELLS


def _review_many(
    names: list[str],
    items: Sequence[Item],
    planted: NDArray[np.bool_],
    limits: AnnotatorLimits,
    resampling: Resampling,
) -> AnnotatorReview:
    """Review more annotators than a table of annotators and items has room for."""
    rated: dict[str, list[int]] = {name: [] for name in names}
    values: dict[str, list[float]] = {name: [] for name in names}
    for number, item in enumerate(items):
        if isinstance(item.ratings, dict):
            for name, rating in item.ratings.items():
                rated[name].append(number)
                values[name].append(rating)
    each = []
    for name in names:
        own = planted[rated[name]]
        share = _distractor_share(np.array(values[name]), own)
        each.append(Annotator(name, len(own), None, int(own.sum()), share))
    table = compact_rating_table(items)
    intervals = _intervals(table, items, resampling, kappa=False)
    alpha = krippendorff_alpha(table, "ordinal")
    agreement = AnnotatorAgreement(each, None, alpha, TOO_MANY, **intervals)
    unreliable = find_unreliable(agreement, names, np.zeros((0, 0)), limits, RATED_HIGH)
    return AnnotatorReview(names, sum(map(len, rated.values())), agreement, unreliable)


@dataclass(frozen=True)
class FilteredRatings:
    """Items without the ratings of some annotators."""

    before: AnnotatorReview
    unreliable: list[UnreliableAnnotator]
    """Among the annotators who were not dropped by name."""
    dropped: list[str]
    items: list[Item]
    after: AnnotatorReview | None
    """None if no annotator was dropped."""

    @classmethod
    def of(
        cls,
        items: Sequence[Item],
        limits: AnnotatorLimits,
        names: Sequence[str] = (),
        *,
        drop_unreliable: bool = False,
        distractor: str = DISTRACTOR,
        resampling: Resampling = RESAMPLING,
    ) -> FilteredRatings:
        """Drop the annotators ``names``, and with ``drop_unreliable`` all unreliable ones."""
        before = AnnotatorReview.of(items, limits, distractor, resampling)
        kept = without_annotators(items, names)
        unreliable = before.unreliable
        if names:
            unreliable = AnnotatorReview.of(kept, limits, distractor, Resampling(0)).unreliable
        unreliable_names = [each.name for each in unreliable] if drop_unreliable else []
        dropped = list(dict.fromkeys([*names, *unreliable_names]))
        if not dropped:
            return cls(before, unreliable, [], list(items), None)
        kept = without_annotators(items, dropped)
        if all(item.ratings is None for item in kept):
            raise DataError("no ratings are left after these annotators are dropped")
        after = AnnotatorReview.of(kept, limits, distractor, resampling)
        return cls(before, unreliable, dropped, kept, after)


@dataclass(frozen=True)
class HumanAgreement:
    """Agreement between annotators, as a ceiling for the correlations of metrics.

    Kappa and correlations need identified annotators.
    """

    annotators: int
    identified: bool
    alpha: float | None
    """Krippendorff's alpha, ordinal."""
    kappa: float | None
    """Cohen's kappa with quadratic weights, mean over pairs of annotators."""
    pairwise: dict[str, dict[str, float]]
    """Highest, lowest and mean correlation between two annotators."""
    against_others: dict[str, dict[str, float | None]]
    """Correlation of each annotator with the average of the others."""
    left_out: str | None = None
    """Why kappa and the correlations of single annotators were not computed."""
    kappa_ci: Interval | None = None
    """95 % interval, resampled by context."""
    alpha_ci: Interval | None = None

    @classmethod
    def of(
        cls, items: Sequence[Item], resampling: Resampling = RESAMPLING
    ) -> HumanAgreement | None:
        """Return the agreement; None if no item has two separate ratings."""
        names = annotator_names(items)
        if len(names) > MAX_ANNOTATORS:
            many = _too_large(names, items)
            table = compact_rating_table(items) if many else rating_table(items)[1]
            alpha = krippendorff_alpha(table, "ordinal")
            intervals = _intervals(table, items, resampling, kappa=False)
            return cls(len(names), True, alpha, None, {}, {}, TOO_MANY, **intervals)
        if names:
            names, table = rating_table(items)
            return cls(
                len(names),
                True,
                krippendorff_alpha(table, "ordinal"),
                mean_pairwise_kappa(table, weights="quadratic"),
                _between_annotators(table),
                _against_others(names, table),
                **_intervals(table, items, resampling, kappa=True),
            )
        table = compact_rating_table(items)
        if len(table) < 2:
            return None
        alpha = krippendorff_alpha(table, "ordinal")
        intervals = _intervals(table, items, resampling, kappa=False)
        return cls(len(table), False, alpha, None, {}, {}, **intervals)


def correlation_with_annotators(
    items: Sequence[Item], scores: Floats
) -> dict[str, dict[str, float]] | None:
    """Return the highest, lowest and mean correlation of a metric with a single annotator.

    None if annotators are not identified or too many.
    """
    if not 0 < len(annotator_names(items)) <= MAX_ANNOTATORS:
        return None
    _, table = rating_table(items)
    return _summary([_correlation(ratings, scores) for ratings in table])


class _Intervals(TypedDict):
    kappa_ci: Interval | None
    alpha_ci: Interval | None


def _intervals(
    table: Floats, items: Sequence[Item], resampling: Resampling, *, kappa: bool
) -> _Intervals:
    """Return the intervals of kappa, if it is wanted, and alpha, resampled by context."""
    contexts, _ = numbered(item.group for item in items)
    size, seed = resampling.resamples, resampling.seed
    return {
        "kappa_ci": kappa_interval(table, contexts, size, seed) if kappa else None,
        "alpha_ci": alpha_interval(table, contexts, "ordinal", size, seed),
    }


def _kappas(table: Floats) -> tuple[Floats, str | None]:
    """Return kappa [annotators, annotators], or an empty table and the reason."""
    if len(table) > MAX_ANNOTATORS:
        return np.zeros((0, 0)), TOO_MANY
    if np.unique(table[~np.isnan(table)]).size > MAX_CATEGORIES:
        return np.zeros((0, 0)), TOO_FINE
    return pairwise_kappas(table, weights="quadratic"), None


def _common(rated: NDArray[np.bool_]) -> Floats:
    """Return how many items each two annotators rated [annotators, annotators]."""
    table = rated.astype(np.float64)
    return table @ table.T


def _distractor_share(ratings: Floats, planted: NDArray[np.bool_]) -> float | None:
    """Return how often a distractor is rated above another reply; None without both kinds."""
    rated = ~np.isnan(ratings)
    distractors, replies = ratings[rated & planted], ratings[rated & ~planted]
    return auc(distractors, replies) if distractors.size and replies.size else None


def _between_annotators(table: Floats) -> dict[str, dict[str, float]]:
    pairs = combinations(range(len(table)), 2)
    return _summary([_correlation(table[i], table[j]) for i, j in pairs])


def _against_others(names: Sequence[str], table: Floats) -> dict[str, dict[str, float | None]]:
    correlations = {}
    all_counts, all_sums = (~np.isnan(table)).sum(axis=0), np.nansum(table, axis=0)
    for number, name in enumerate(names):
        counts = all_counts - ~np.isnan(table[number])
        sums = all_sums - np.nan_to_num(table[number])
        average = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
        correlations[name] = _correlation(table[number], average)
    return correlations


def _correlation(a: Floats, b: Floats) -> dict[str, float | None]:
    """Return the correlations over the items that have both values; empty if they are too few."""
    both = ~(np.isnan(a) | np.isnan(b))
    if both.sum() < MIN_COMMON:
        return {}
    once = np.ones((1, int(both.sum())), np.int32)
    columns = Columns.of(a[both][np.newaxis]), Columns.of(b[both][np.newaxis])
    values = {s: float(weighted(s, once, *columns)[0, 0]) for s in STATISTICS}
    return {s: None if math.isnan(value) else value for s, value in values.items()}


def _summary(rows: Sequence[dict[str, float | None]]) -> dict[str, dict[str, float]]:
    """Return the highest, lowest and mean of each correlation, as far as defined."""
    summary: dict[str, dict[str, float]] = {}
    for statistic in STATISTICS:
        defined = [value for row in rows if (value := row.get(statistic)) is not None]
        if defined:
            mean = math.fsum(defined) / len(defined)
            summary[statistic] = {"max": max(defined), "min": min(defined), "mean": mean}
    return summary
