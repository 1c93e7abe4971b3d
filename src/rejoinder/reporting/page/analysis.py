"""The statistics of a report: rankings of systems, agreement with people, coverage.

All statistics are those of ``compare`` and ``meta``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.evaluator.contamination import ContaminationReport
from rejoinder.evaluator.coverage import Coverage, CoverageSummary, CoverageTally
from rejoinder.items import Item
from rejoinder.meta_evaluation.annotators import Resampling
from rejoinder.meta_evaluation.evaluation import MetaEvaluation, MetaSettings, evaluate_metrics
from rejoinder.meta_evaluation.join import Joined
from rejoinder.meta_evaluation.ranking import (
    MAX_ALL_PAIRS,
    PEOPLE,
    RESAMPLES,
    NotComparable,
    RankedSystem,
    Ranking,
    RankingOptions,
    higher_is_better,
    rank_values,
)
from rejoinder.meta_evaluation.reference_curve import CurvePoint
from rejoinder.reporting.page.few_estimates import FewRatings, few_ratings
from rejoinder.reporting.page.report_data import ReportData
from rejoinder.trust.review import JudgesReview, ReviewOptions, review_judges
from rejoinder.trust.runs import is_judge

Floats = NDArray[np.float64]

MAX_DIFFERENCES = 10**8
"""Resampled differences of systems in all rankings of a page; they take about ten seconds."""
MAX_RATED = 10_000
"""Rated items that agreement is computed over; more would take minutes and change little."""


@dataclass(frozen=True)
class SystemOrder:
    """The systems by one metric or by people, tested against each other if possible."""

    name: str
    systems: list[RankedSystem]
    """Best first; without groups if they were not tested."""
    ranking: Ranking | None
    """None if the systems can't be tested against each other."""
    why_not: str | None = None
    higher_is_better: bool = True
    unranked: int = 0
    """Number of systems without any value."""


@dataclass(frozen=True)
class Agreement:
    """Agreement of the metrics with people."""

    items: MetaEvaluation | None
    systems: MetaEvaluation | None
    joined: Joined
    """The items and scores that it was computed over."""
    rated: int
    """Number of rated items; ``joined`` has a sample of many."""
    missing: str | None = None
    """Why there is no agreement."""


@dataclass(frozen=True)
class EvaluatorInfo:
    """The evaluator of a report, and which of the contexts it has seen."""

    name: str
    made_by: str
    digest: str
    language: str | None
    contamination: ContaminationReport
    usual: Mapping[str, float] = field(default_factory=dict)
    preset: str = ""

    @property
    def only_for_tests(self) -> bool:
        """Whether it was trained for seconds only."""
        return self.preset == "tiny"


@dataclass(frozen=True)
class Analysis:
    """All statistics of a report."""

    data: ReportData
    settings: MetaSettings
    orders: list[SystemOrder]
    """The systems by each metric, the ranking one first."""
    people: SystemOrder | None
    """The systems by human ratings, if there are any."""
    agreement: Agreement
    coverage: CoverageSummary | None
    evaluator: EvaluatorInfo | None = None
    curves: Mapping[str, Sequence[CurvePoint]] = field(default_factory=dict)
    ranking_resamples: int = RESAMPLES
    judges: JudgesReview | None = None
    """If a metric is a judge, and people rated."""
    few: FewRatings | None = None
    """If people rated some of the replies."""

    @property
    def headline(self) -> SystemOrder:
        """The order that answers which system is better: people's, if they can tell."""
        if self.people is not None and self.people.ranking is not None:
            return self.people
        return self.orders[0]


def analyse(
    data: ReportData,
    settings: MetaSettings,
    *,
    evaluator: EvaluatorInfo | None = None,
    curves: Mapping[str, Sequence[CurvePoint]] | None = None,
    step: Callable[[str], None] = lambda _: None,
) -> Analysis:
    """Compute the statistics of a report; ``step`` is called with the name of each step."""
    orders = []
    resamples = ranking_resamples(settings, len(data.metrics), len(data.systems))
    for name in data.metrics:
        step(f"ranking systems by {name}")
        scores, reasons = data.joined.item_scores[name], data.notes.reasons.get(name, {})
        orders.append(_order(name, data.items, scores, reasons, settings, resamples))
    step("comparing with people")
    people = None
    if not np.isnan(data.joined.human).all():
        rated = np.flatnonzero(~np.isnan(data.joined.human)).tolist()
        items = [data.items[i] for i in rated]
        people = _order(PEOPLE, items, data.joined.human[rated], {}, settings, resamples)
    agreement = agreement_with_people(data, settings)
    judges = None
    if agreement.items is not None and any(map(is_judge, data.metrics)):
        step("reviewing judges")
        resampling = Resampling(settings.resamples, settings.seed)
        judges = review_judges(agreement.joined, ReviewOptions(resampling))
    return Analysis(
        data,
        settings,
        orders,
        people,
        agreement,
        _coverage(data, evaluator),
        evaluator,
        curves or {},
        resamples,
        judges,
        few_ratings(data, settings.seed),
    )


def ranking_resamples(settings: MetaSettings, metrics: int, systems: int) -> int:
    """Return the number of resamples of rankings: as many as in ``compare`` by default, so that
    both find the same differences significant, unless rankings are very many."""
    pairs = metrics * systems * (systems - 1) // 2
    return max(settings.resamples, min(RESAMPLES, MAX_DIFFERENCES // max(1, pairs)))


def _order(
    name: str,
    items: Sequence[Item],
    values: Floats,
    reasons: Mapping[str, str],
    settings: MetaSettings,
    resamples: int,
) -> SystemOrder:
    better = name == PEOPLE or higher_is_better(name)
    systems = list(dict.fromkeys(item.system for item in items))
    options = RankingOptions(resamples, settings.seed)
    try:
        ranking = rank_values(
            items,
            values,
            by=name,
            higher_is_better=better,
            reasons=reasons,
            options=options,
        )
        unranked = len(ranking.unranked)
        return SystemOrder(name, ranking.systems, ranking, None, better, unranked)
    except NotComparable as error:
        why_not = str(error)
    alone = _separate_means(
        items, values, systems, RankingOptions(settings.resamples, settings.seed)
    )
    alone.sort(key=lambda row: -row.value if better else row.value)
    return SystemOrder(name, alone, None, why_not, better, len(systems) - len(alone))


def _separate_means(
    items: Sequence[Item], values: Floats, systems: Sequence[str], options: RankingOptions
) -> list[RankedSystem]:
    """Return the mean of each system on its own; intervals only of a moderate number of systems."""
    owned: dict[str, list[int]] = {system: [] for system in systems}
    for number, item in enumerate(items):
        owned[item.system].append(number)
    rows: list[RankedSystem] = []
    for system, own in owned.items():
        scored = values[own][~np.isnan(values[own])]
        if not scored.size:
            continue
        with np.errstate(over="ignore"):
            mean = RankedSystem(system, float(scored.mean()), math.nan, math.nan, "")
        if len(systems) <= MAX_ALL_PAIRS:
            try:
                only = rank_values([items[i] for i in own], values[own], options=options)
                mean = replace(only.systems[0], group="")
            except NotComparable:  # too few contexts to resample
                pass
        rows.append(mean)
    return rows


def agreement_with_people(data: ReportData, settings: MetaSettings) -> Agreement:
    """Correlate metrics with people over items and over systems."""
    joined = data.joined
    rated = np.flatnonzero(~np.isnan(joined.human))
    if not rated.size:
        why = "No item has ratings, so the agreement of the metrics with people is unknown."
        return Agreement(None, None, joined, 0, why)
    sample = _sample(joined, rated, settings.seed) if rated.size > MAX_RATED else joined
    by_level: dict[str, MetaEvaluation | None] = {}
    missing: str | None = None
    for level in ("item", "system"):
        try:
            by_level[level] = evaluate_metrics(sample, level, settings, differences=False)
        except DataError as error:
            by_level[level] = None
            if level == "item":
                missing = f"The metrics can't be compared with people: {error}."
    return Agreement(by_level["item"], by_level["system"], sample, int(rated.size), missing)


def _sample(joined: Joined, rated: NDArray[np.intp], seed: int) -> Joined:
    """Return the rated items of random contexts, in the order of the file."""
    rng = np.random.default_rng(seed)
    groups, sizes = np.unique(joined.contexts[rated], return_counts=True)
    order = rng.permutation(len(groups))
    within = np.cumsum(sizes[order]) <= MAX_RATED
    within[0] = True
    keep = rated[np.isin(joined.contexts[rated], groups[order[within]])]
    if keep.size > MAX_RATED:  # a single context with very many replies
        keep = np.sort(rng.permutation(keep)[:MAX_RATED])
    return Joined(
        [joined.items[i] for i in keep.tolist()],
        {name: values[keep] for name, values in joined.item_scores.items()},
        {},
        {},
        [name for name in joined.order if name in joined.item_scores],
        {
            name: {kind: values[keep] for kind, values in kinds.items()}
            for name, kinds in joined.coverage.items()
        },
        joined.signatures,
        judging={
            name: {kind: values[keep] for kind, values in kinds.items()}
            for name, kinds in joined.judging.items()
        },
    )


def _coverage(data: ReportData, evaluator: EvaluatorInfo | None) -> CoverageSummary | None:
    """Return the coverage in the scores; it is the same for all metrics of one evaluator."""
    arrays = next(iter(data.joined.coverage.values()), None)
    if arrays is None:
        return None
    nothing = np.zeros(0)
    tally = CoverageTally(evaluator.usual if evaluator else {})
    tally.add(Coverage(arrays.get("nearest", nothing), arrays.get("agreement", nothing)))
    return tally.summary()
