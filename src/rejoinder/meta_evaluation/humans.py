"""How far people agree with each other: the ceiling of every metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rejoinder.items import Item
from rejoinder.meta_evaluation.agreement import krippendorff_alpha, mean_pairwise_kappa
from rejoinder.meta_evaluation.correlate import STATISTICS, Columns, weighted
from rejoinder.meta_evaluation.join import Floats

FEWEST = 10
"""Items that two columns must share before their correlation is worth naming: the extremes over
many annotators with a handful of items each are noise."""

MOST_ANNOTATORS = 200
"""Their pairs grow with the square, and a row for each fills no table that anybody reads."""
TOO_MANY = f"more than {MOST_ANNOTATORS} annotators are not compared one by one"


@dataclass(frozen=True)
class Humans:
    """Agreement between annotators; correlations and kappa only where they are identified."""

    annotators: int
    identified: bool
    alpha: float | None
    """Krippendorff's, ordinal."""
    kappa: float | None
    """Cohen's, quadratic weights, mean over pairs."""
    pairwise: dict[str, dict[str, float]]
    """Between two annotators: highest, lowest and mean correlation."""
    against_others: dict[str, dict[str, float | None]]
    """Each annotator against the average of the others."""
    left_out: str | None = None
    """Why kappa and the correlations of single annotators were not computed."""

    @classmethod
    def of(cls, items: Sequence[Item]) -> Humans | None:
        """None where nobody's single ratings are known."""
        names, table = rating_table(items)
        if len(names) > MOST_ANNOTATORS:
            alpha = krippendorff_alpha(table, "ordinal")
            return cls(len(names), True, alpha, None, {}, {}, TOO_MANY)
        if names:
            return cls(
                len(names),
                True,
                krippendorff_alpha(table, "ordinal"),
                mean_pairwise_kappa(table, weights="quadratic"),
                _pairwise(table),
                _against_others(names, table),
            )
        anonymous = _anonymous_table(items)
        if anonymous is None:
            return None
        return cls(len(anonymous), False, krippendorff_alpha(anonymous, "ordinal"), None, {}, {})


def rating_table(items: Sequence[Item]) -> tuple[list[str], Floats]:
    """Identified annotators, and their ratings [annotators, items]; NaN where one did not rate."""
    names: dict[str, int] = {}
    for item in items:
        if isinstance(item.ratings, dict):
            for name in item.ratings:
                names.setdefault(name, len(names))
    table = np.full((len(names), len(items)), np.nan)
    for column, item in enumerate(items):
        if isinstance(item.ratings, dict):
            for name, rating in item.ratings.items():
                table[names[name], column] = rating
    return list(names), table


def _anonymous_table(items: Sequence[Item]) -> Floats | None:
    """Ratings by nobody in particular; alpha does not ask who gave which."""
    lists = [item.ratings if isinstance(item.ratings, list) else [] for item in items]
    most = max(map(len, lists), default=0)
    if most < 2:
        return None
    table = np.full((most, len(items)), np.nan)
    for column, ratings in enumerate(lists):
        table[: len(ratings), column] = ratings
    return table


def against_each(items: Sequence[Item], scores: Floats) -> dict[str, dict[str, float]] | None:
    """The papers' rows: highest and lowest correlation of a metric with a single annotator; None
    where annotators are not known or too many."""
    names, table = rating_table(items)
    if not 0 < len(names) <= MOST_ANNOTATORS:
        return None
    return _extremes([_shared(ratings, scores) for ratings in table])


def _pairwise(table: Floats) -> dict[str, dict[str, float]]:
    pairs = [_shared(table[i], table[j]) for i, j in combinations(range(len(table)), 2)]
    found = _extremes(pairs)
    for statistic in found:
        known = [p[statistic] for p in pairs if p.get(statistic) is not None]
        found[statistic]["mean"] = float(np.mean(np.array(known, dtype=float)))
    return found


def _against_others(names: Sequence[str], table: Floats) -> dict[str, dict[str, float | None]]:
    found = {}
    all_counts, all_sums = (~np.isnan(table)).sum(axis=0), np.nansum(table, axis=0)
    for number, name in enumerate(names):
        counts = all_counts - ~np.isnan(table[number])
        sums = all_sums - np.nan_to_num(table[number])
        average = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
        found[name] = _shared(table[number], average)
    return found


def _shared(a: Floats, b: Floats) -> dict[str, float | None]:
    """Correlations over the items for which both are known."""
    both = ~(np.isnan(a) | np.isnan(b))
    if both.sum() < FEWEST:
        return {}
    once = np.ones((1, int(both.sum())), np.int32)
    columns = Columns.of(a[both][np.newaxis]), Columns.of(b[both][np.newaxis])
    values = {s: float(weighted(s, once, *columns)[0, 0]) for s in STATISTICS}
    return {s: None if math.isnan(value) else value for s, value in values.items()}


def _extremes(rows: Sequence[dict[str, float | None]]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for statistic in STATISTICS:
        known = [value for row in rows if (value := row.get(statistic)) is not None]
        if known:
            found[statistic] = {"max": max(known), "min": min(known)}
    return found
