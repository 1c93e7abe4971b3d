"""Meta-evaluation: the correlation of each metric of a scores file with human ratings."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.meta_evaluation.annotators import (
    HumanAgreement,
    Resampling,
    correlation_with_annotators,
)
from rejoinder.meta_evaluation.correlate import Correlations, Statistic, correlate_many
from rejoinder.meta_evaluation.coverage import CoverageThird, by_coverage
from rejoinder.meta_evaluation.dialogues import dialogue_units
from rejoinder.meta_evaluation.join import Floats, Joined, Units
from rejoinder.meta_evaluation.pairwise_accuracy import pairwise_accuracy, tie_calibrated
from rejoinder.meta_evaluation.roc import recall_at_1, roc_auc
from rejoinder.meta_evaluation.significance import holm, perm_both, williams
from rejoinder.meta_evaluation.system_level import TooFewSystems, correlate_systems
from rejoinder.wording import option

HUMAN = "human"


@dataclass(frozen=True)
class Accuracy:
    """Share of pairs of replies to one context that a metric orders as people do."""

    pairs: int
    plain: float
    calibrated: float | None
    threshold: float | None
    """Scores this close count as tied. It is chosen on the same data, so ``calibrated`` is
    optimistic. Both are None if there are too many pairs to sort."""


@dataclass(frozen=True)
class MetricResult:
    """Agreement of one metric with people."""

    metric: str
    level: str
    unscored: int
    correlations: Correlations
    without_human: Correlations | None = None
    """Without replies written by people, if there are any."""
    annotators: dict[str, dict[str, float]] | None = None
    """Highest, lowest and mean correlation with a single annotator, if they are identified."""
    accuracy: Accuracy | None = None
    auc: float | None = None
    """Area under the ROC curve, if ratings have two different values."""
    recall_at_1: float | None = None
    """Share of contexts in which a right reply has the highest score, likewise."""
    undefined: str | None = None
    """Why the correlation is undefined."""


@dataclass(frozen=True)
class MetricDifference:
    """Test whether one metric correlates better with people than another.

    p-values are two-sided, because the data decide which of the two is called better.
    """

    better: str
    worse: str
    n: int
    statistic: Statistic
    difference: float | None
    perm_both: float | None
    williams: float | None
    adjusted: float | None = None
    """``perm_both`` adjusted for all pairs of metrics (Holm)."""


@dataclass(frozen=True)
class MetaEvaluation:
    """Agreement of all metrics of a scores file with people, at one level."""

    level: str
    rated: int
    unrated: int
    results: list[MetricResult]
    refused: dict[str, str]
    differences: list[MetricDifference]
    humans: HumanAgreement | None
    by_coverage: list[CoverageThird] = field(default_factory=list)
    """If the scores say how well an evaluator's pool covers the items."""


@dataclass(frozen=True)
class MetaSettings:
    """Resampling, the statistic of tests, and the system whose replies people wrote."""

    resamples: int = 1000
    seed: int = 12345
    statistic: Statistic = "spearman"
    human_system: str | None = HUMAN
    """Correlations are also computed without it; None: only with all systems."""
    turns: str = "mean"
    """How the score of a dialogue is made of those of its turns."""


def evaluate_metrics(
    joined: Joined, level: str, settings: MetaSettings, *, differences: bool = True
) -> MetaEvaluation:
    """Correlate every metric that has values at this level with people.

    Tests of the ``differences`` between metrics take the longest and can be left out.
    """
    units = _units_of(joined, level, settings)
    rated = ~np.isnan(units.human)
    if not rated.any():
        raise DataError(
            "no item has ratings; agreement with people needs the field 'ratings'"
            f" ({option('columns', {'ratings': 'NAME'})} says which columns have them)"
        )
    results, refused = _results(joined, units, level, settings)
    names = [r.metric for r in results] if differences and level != "system" else []
    tested = _differences(units, names, settings)
    if not results:
        by_reason: dict[str, list[str]] = {}
        for name, reason in refused.items():
            by_reason.setdefault(reason, []).append(name)
        messages = (f"{', '.join(names)}: {reason}" for reason, names in by_reason.items())
        raise DataError("; ".join(messages))
    return MetaEvaluation(
        level,
        int(rated.sum()),
        int((~rated).sum()),
        results,
        refused,
        tested,
        None
        if units.rated is None or level == "system"
        else HumanAgreement.of(units.rated, Resampling(settings.resamples, settings.seed)),
        by_coverage(joined, settings.resamples, settings.seed) if level == "item" else [],
    )


def metric_results(joined: Joined, level: str, settings: MetaSettings) -> list[MetricResult]:
    """Return the correlations only, to compare with those over fewer annotators."""
    return _results(joined, _units_of(joined, level, settings), level, settings)[0]


def _units_of(joined: Joined, level: str, settings: MetaSettings) -> Units:
    if level == "dialogue":
        return dialogue_units(joined, settings.turns, settings.seed)
    return joined.sets() if level == "context" else joined.replies()


def _results(
    joined: Joined, units: Units, level: str, settings: MetaSettings
) -> tuple[list[MetricResult], dict[str, str]]:
    return (_systems if level == "system" else _units)(joined, units, settings)


def _units(
    joined: Joined, units: Units, settings: MetaSettings
) -> tuple[list[MetricResult], dict[str, str]]:
    names = [name for name in joined.order if name in units.scores]
    refused = {
        name: (
            "it scores sets of replies, not single ones; use"
            f" {option('level', 'context')} or {option('level', 'system')}"
        )
        for name in joined.order
        if name not in units.scores
    }
    has_people = units.of(settings.human_system).any()
    everyone = correlate_units(units, names, settings)
    systems_only = (
        correlate_units(units.without(settings.human_system), names, settings) if has_people else {}
    )
    results = []
    for name in names:
        rated = ~np.isnan(units.human)
        scored = rated & ~np.isnan(units.scores[name])
        results.append(
            MetricResult(
                name,
                units.level,
                int((rated & ~scored).sum()),
                everyone[name],
                systems_only.get(name),
                None
                if units.rated is None
                else correlation_with_annotators(units.rated, units.scores[name]),
                _accuracy(units, name, scored),
                roc_auc(units.scores[name][scored], units.human[scored]),
                _recall(units, name, scored),
                why_undefined(units.scores[name][scored], units.human[scored]),
            )
        )
    return results, refused


def _recall(units: Units, name: str, scored: NDArray[np.bool_]) -> float | None:
    if units.level != "item":
        return None
    return recall_at_1(units.scores[name][scored], units.human[scored], units.context[scored])


def why_undefined(scores: Floats, human: Floats) -> str | None:
    """Return why a correlation is undefined; None if it is not."""
    if len(scores) < 3:
        return f"expected at least 3 rated and scored units, found {len(scores)}"
    if scores.min() == scores.max():
        return "all scores are equal"
    if human.min() == human.max():
        return "all ratings of the scored units are equal"
    return None


def correlate_units(
    units: Units, names: Sequence[str], settings: MetaSettings
) -> dict[str, Correlations]:
    """Return the correlations of each metric over the units that are rated and scored.

    Metrics with the same scored units share resamples.
    """
    by_name: dict[str, Correlations] = {}
    by_mask: dict[bytes, list[str]] = {}
    masks = {n: ~np.isnan(units.human) & ~np.isnan(units.scores[n]) for n in names}
    for name in names:
        by_mask.setdefault(masks[name].tobytes(), []).append(name)
    for group in by_mask.values():
        scored = masks[group[0]]
        correlations = correlate_many(
            np.array([units.scores[name][scored] for name in group]),
            units.human[scored],
            clusters=units.context[scored],
            resamples=settings.resamples,
            seed=settings.seed,
        )
        by_name.update(zip(group, correlations, strict=True))
    return by_name


def _accuracy(units: Units, name: str, scored: np.ndarray) -> Accuracy | None:
    scores, human, context = units.scores[name][scored], units.human[scored], units.context[scored]
    plain = pairwise_accuracy(scores, human, context)
    best = tie_calibrated(scores, human, context)
    if plain is None:
        return None
    return Accuracy(best.pairs, plain, best.accuracy, best.eps)


def _differences(
    units: Units, names: Sequence[str], settings: MetaSettings
) -> list[MetricDifference]:
    """Test every pair of metrics over the units that both scored, the better one first."""
    differences = []
    for first, second in combinations(names, 2):
        a, b = units.scores[first], units.scores[second]
        scored = ~(np.isnan(units.human) | np.isnan(a) | np.isnan(b))
        if scored.sum() < 4:
            continue
        differences.append(
            _difference(first, second, a[scored], b[scored], units.human[scored], settings)
        )
    adjusted = holm([np.nan if row.perm_both is None else row.perm_both for row in differences])
    return [
        replace(row, adjusted=None if np.isnan(p) else float(p))
        for row, p in zip(differences, adjusted, strict=True)
    ]


def _difference(
    first: str, second: str, a: Floats, b: Floats, human: Floats, settings: MetaSettings
) -> MetricDifference:
    kind = settings.statistic
    of_a, of_b = (
        getattr(c, kind).value for c in correlate_many(np.array([a, b]), human, resamples=0)
    )
    if of_a is not None and of_b is not None and of_b > of_a:
        first, second, a, b, of_a, of_b = second, first, b, a, of_b, of_a
    between = getattr(correlate_many(a[np.newaxis], b, resamples=0)[0], kind).value
    test = perm_both(
        a,
        b,
        human,
        statistic=kind,
        resamples=settings.resamples,
        seed=settings.seed,
        alternative="two-sided",
    )
    one_sided = None if kind == "kendall" else williams(of_a, of_b, between, human.size)
    return MetricDifference(
        first,
        second,
        human.size,
        kind,
        test.difference,
        test.p,
        None if one_sided is None else min(1.0, 2 * min(one_sided, 1 - one_sided)),
    )


def _systems(
    joined: Joined, units: Units, settings: MetaSettings
) -> tuple[list[MetricResult], dict[str, str]]:
    bots = units.without(settings.human_system)
    has_people = len(bots.system) < len(units.system)
    results, refused = [], {}
    for name in joined.order:
        whole = joined.system_scores.get(name)
        scores = units.scores.get(name)
        try:
            everyone = correlate_systems(units, name, whole, settings.resamples, settings.seed)
        except TooFewSystems as error:
            refused[name] = (
                f"{error}: with two it is always +1 or -1; use {option('level', 'item')}"
            )
            continue
        without_human = None
        if has_people:
            with contextlib.suppress(TooFewSystems):
                without_human = correlate_systems(
                    bots, name, whole, settings.resamples, settings.seed
                )
        unscored = 0 if scores is None else int((np.isnan(scores) & ~np.isnan(units.human)).sum())
        equal = everyone.spearman.value is None and everyone.pearson.value is None
        why = "all mean scores, or all mean ratings, of the systems are equal"
        undefined = why if equal else None
        results.append(
            MetricResult(name, "system", unscored, everyone, without_human, undefined=undefined)
        )
    return results, refused
