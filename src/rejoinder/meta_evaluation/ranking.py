"""Ranking of systems by a metric or by people, with intervals, tests and groups.

Systems are compared context by context, because some contexts are easier than others. Two systems
are tested on the contexts that both answered, so that a third system never changes their
difference. The values that order all systems are over the contexts that all of them answered. All
computations use additive statistics: intervals by paired bootstrap over contexts, p-values by
paired bootstrap and by approximate randomisation, adjusted for the number of tests (Holm).

The number of pairs grows with the square of the number of systems. Above MAX_ALL_PAIRS systems only
neighbours in the ranking are tested, and the baseline, if there is one, with every other system,
all on the contexts that every system answered; ``Ranking.neighbours_only`` says so, and there are
no groups.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError, UsageError
from rejoinder.item_table import ItemTable
from rejoinder.items import UNNAMED, Item
from rejoinder.meta_evaluation.join import Joined, abbreviated
from rejoinder.meta_evaluation.paired_tests import PairTests, SystemTests
from rejoinder.meta_evaluation.significance import Finish, holm, letters
from rejoinder.metrics.evaluate import BatchScores, SystemScore, score_sets
from rejoinder.metrics.metric import Metric
from rejoinder.metrics.metric_set import MetricSet
from rejoinder.metrics.pooling import averaged
from rejoinder.registry import METRICS
from rejoinder.spec import did_you_mean, parse
from rejoinder.wording import option

Floats = NDArray[np.float64]
Aggregate = Literal["corpus", "mean"]

PEOPLE = "people"
"""Label of a ranking by human ratings."""
ALPHA = 0.05
RESAMPLES = 10_000
"""Number of resamples, and of random swaps, by default. With twelve systems (66 tests), 1,000 swaps
found 56 % of true differences, 10,000 found 79 % (``benchmarks/significance.py``)."""
MAX_ALL_PAIRS = 300
"""Systems up to which every pair is tested."""
NOT_ADDITIVE = "it does not add up over contexts, so they can't be resampled"


@dataclass(frozen=True)
class RankedSystem:
    """One system's place in a ranking."""

    system: str
    value: float
    low: float
    high: float
    group: str
    """Letters: systems that share one can't be told apart at the 5 % level. Empty if not all pairs
    were tested."""


@dataclass(frozen=True)
class SystemPair:
    """Test of two systems: by how much the first is better, also if lower values are better."""

    better: str
    worse: str
    difference: float
    low: float
    high: float
    p_bootstrap: float
    p_randomisation: float | None
    p_adjusted: float | None
    """``p_randomisation`` adjusted for all tested pairs of the ranking (Holm)."""
    contexts: int
    """Contexts that both systems answered, on which they were tested."""


@dataclass(frozen=True)
class BaselineTest:
    """Test whether a system is worse than the baseline by more than a margin."""

    system: str
    difference: float
    """By how much the baseline is better; negative if the system is better."""
    low: float
    high: float
    p: float | None
    """Two-sided, and adjusted for all tests against the baseline (Holm): approximate randomisation,
    or with a margin a paired bootstrap test of the difference against the margin."""
    worse: bool
    """The difference exceeds the margin, and p < .05."""
    contexts: int
    """Contexts that both systems answered, on which they were tested."""


@dataclass(frozen=True)
class Ranking:
    """Systems from best to worst, by their values over the contexts that all of them answered."""

    contexts: int
    """Contexts that all systems answered."""
    left_out: int
    """Contexts that some system did not answer, or that could not be scored for some system."""
    systems: list[RankedSystem]
    pairs: list[SystemPair]
    """All pairs, or with ``neighbours_only`` each system with the next one. Each is tested on the
    contexts that the two systems answered."""
    by: str = ""
    """Label of the metric, or "people"."""
    signature: str | None = None
    higher_is_better: bool = True
    aggregate: Aggregate = "mean"
    """Whether a system's value is the metric of its whole corpus or the mean over its replies."""
    neighbours_only: bool = False
    unranked: list[str] = field(default_factory=list)
    """Systems without any value."""
    baseline: str | None = None
    baseline_tests: list[BaselineTest] = field(default_factory=list)
    """The baseline against each other system."""


def worse_than_baseline(ranking: Ranking) -> list[BaselineTest]:
    """Return the tests that fail the gate "no system is worse than the baseline"."""
    return [test for test in ranking.baseline_tests if test.worse]


def significant_pairs(ranking: Ranking) -> list[SystemPair]:
    """Return the pairs whose difference is significant at the 5 % level."""
    return [pair for pair in ranking.pairs if (p := pair.p_adjusted) is not None and p <= ALPHA]


def reversed_pairs(ranking: Ranking) -> list[SystemPair]:
    """Return the significant pairs whose better system ranks below the other one.

    The ranking has only the contexts that all systems answered, a test those that two answered.
    """
    place = {row.system: number for number, row in enumerate(ranking.systems)}
    return [p for p in significant_pairs(ranking) if place[p.better] > place[p.worse]]


@dataclass(frozen=True)
class RankingOptions:
    """How systems are tested.

    ``baseline`` names a system that is tested against each other one, also if otherwise only
    neighbours are; systems fail the gate that are worse than it by more than ``margin``.
    """

    resamples: int = RESAMPLES
    seed: int = 12345
    baseline: str | None = None
    margin: float = 0.0

    def check(self, systems: Collection[str]) -> None:
        """Raise an error if there is nothing to compare, no such baseline, or too few resamples."""
        if list(systems) == [UNNAMED]:
            raise DataError(
                "the field 'system' is missing in all items; expected the name of the system that"
                " wrote the reply, two or more of them (see"
                f" {option('columns', {'system': 'COLUMN'})})"
            )
        if len(systems) < 2:
            raise DataError(
                f"found only one system ({', '.join(systems)}); expected replies of two or more"
                " systems, distinguished by the field 'system'"
            )
        if self.baseline is not None and self.baseline not in systems:
            hint = did_you_mean(self.baseline, systems)
            raise UsageError(f"baseline '{self.baseline}': no such system: {hint}")
        # with a margin, p is at least 2 / (resamples + 1), and Holm multiplies it by the number of
        # tests: with too few resamples no system could ever fail the gate
        needed = math.floor(2 * (len(systems) - 1) / ALPHA)
        if self.baseline is not None and self.margin and self.resamples < needed:
            raise UsageError(
                f"{len(systems) - 1:,} systems against a baseline with a margin need at least"
                f" {needed:,} resamples to find any of them worse:"
                f" add {option('resamples', needed)}"
            )
        if not 0 <= self.margin < math.inf:
            raise UsageError(f"margin: expected a number of at least 0, got {self.margin}")


class NotComparable(Exception):
    """Systems can't be compared by a metric; the message says why."""


@dataclass
class ContextStatistics:
    """Additive statistics of one metric by system and context, and reasons for missing ones."""

    finish: Finish
    higher_is_better: bool = True
    rows: dict[tuple[str, str], Floats] = field(default_factory=dict)
    """By system and context."""
    missing: set[tuple[str, str]] = field(default_factory=set)
    """Systems and contexts in which a reply could not be scored."""
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Replies that could not be scored, by system and reason."""

    def add(self, system: str, context: str, row: Floats | None, reason: str | None) -> None:
        """Add the statistics of one reply, or the reason why there are none."""
        if row is None or reason is not None:
            self.missing.add((system, context))
            self.reasons[system, str(reason)] += 1
        else:
            key = system, context
            self.rows[key] = self.rows[key] + row if key in self.rows else row


def compare_systems(
    metrics: MetricSet,
    batches: Iterable[tuple[ItemTable, list[BatchScores]]],
    *,
    resamples: int = RESAMPLES,
    seed: int = 12345,
    baseline: str | None = None,
    margin: float = 0.0,
) -> tuple[list[Ranking], dict[str, str]]:
    """Rank the systems by each metric while scoring.

    ``batches`` are those of :func:`rejoinder.metrics.evaluate.evaluate`. Returns the rankings, and
    by label the reasons why systems can't be compared by the other metrics.
    """
    options = RankingOptions(resamples, seed, baseline, margin)
    statistics: dict[Metric, ContextStatistics] = {
        metric: ContextStatistics(metric.values, metric.higher_is_better)
        for metric in metrics.item_metrics
    }
    systems: dict[str, None] = {}
    kept: list[Item] = []
    for items, results in batches:
        systems.update(dict.fromkeys(item.system for item in items))
        kept.extend(items if metrics.set_metrics else ())
        for column, result in zip(statistics.values(), results, strict=True):
            for item, row, reason in zip(items, result.rows, result.reasons, strict=True):
                column.add(item.system, item.group, row, reason)
    options.check(systems)
    of_sets, refused = _set_statistics(score_sets(kept, metrics.set_metrics))
    reasons = {metrics.labels[metric]: reason for metric, reason in refused.items()}
    rankings = []
    for metric, column in (statistics | of_sets).items():
        label = metrics.labels[metric]
        try:
            ranking = rank(column, list(systems), options)
        except NotComparable as error:
            reasons[label] = str(error)
            continue
        aggregate: Aggregate = "corpus" if metric in statistics else "mean"
        rankings.append(
            replace(ranking, by=label, signature=metric.signature(), aggregate=aggregate)
        )
    return _checked(rankings, reasons), reasons


def compare_scores(
    joined: Joined,
    metrics: Sequence[str] | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 12345,
    baseline: str | None = None,
    margin: float = 0.0,
) -> tuple[list[Ranking], dict[str, str]]:
    """Rank the systems by each metric of a scores file, or by some of them.

    A system's value is the mean of its scores. Scores of other programs can be used as well; for
    metrics that Rejoinder does not know, higher is better.
    """
    options = RankingOptions(resamples, seed, baseline, margin)
    options.check(dict.fromkeys(item.system for item in joined.items))
    rankings: list[Ranking] = []
    reasons: dict[str, str] = {}
    for label in joined.order if metrics is None else find_labels(joined, metrics):
        try:
            rankings.append(_rank_label(joined, label, options))
        except NotComparable as error:
            reasons[label] = str(error)
    return _checked(rankings, reasons), reasons


def compare_people(
    items: Sequence[Item],
    *,
    resamples: int = RESAMPLES,
    seed: int = 12345,
    baseline: str | None = None,
    margin: float = 0.0,
) -> tuple[list[Ranking], dict[str, str]]:
    """Rank the systems by the mean of their human ratings, over the rated items.

    Returns one ranking, in the same form as :func:`compare_scores`.
    """
    systems = dict.fromkeys(item.system for item in items)
    options = RankingOptions(resamples, seed, baseline, margin)
    options.check(systems)
    rated = [item for item in items if item.rating() is not None]
    if not rated:
        raise DataError(
            "no item has ratings; ranking by people needs the field 'ratings'"
            f" ({option('columns', {'ratings': 'NAME'})} says which columns have them)"
        )
    values = np.array([item.rating() for item in rated], dtype=float)
    try:
        ranking = rank_values(rated, values, by=PEOPLE, options=options)
    except NotComparable as error:
        raise DataError(f"people: {error}") from None
    ranked = {row.system for row in ranking.systems}
    return [replace(ranking, unranked=[name for name in systems if name not in ranked])], {}


def rank_values(
    items: Sequence[Item],
    values: Floats,
    *,
    by: str = "",
    higher_is_better: bool = True,
    reasons: Mapping[str, str] | None = None,
    options: RankingOptions | None = None,
) -> Ranking:
    """Rank systems by the mean value of their replies, such as scores or ratings.

    NaN is unscored; ``reasons`` gives the reason by item id.
    """
    column = ContextStatistics(averaged, higher_is_better)
    for item, value in zip(items, values.tolist(), strict=True):
        if math.isnan(value):
            column.add(item.system, item.group, None, (reasons or {}).get(item.id, "no value"))
        else:
            column.add(item.system, item.group, np.array([value, 1.0]), None)
    systems = list(dict.fromkeys(item.system for item in items))
    return replace(rank(column, systems, options or RankingOptions()), by=by)


def find_labels(joined: Joined, metrics: Sequence[str]) -> list[str]:
    """Return the labels in a scores file of some metrics, whose specs may be spelt differently."""
    labels, problems = [], []
    for metric in metrics:
        label = find_label(joined.order, metric)
        if label is not None:
            labels.append(label)
        else:
            hint = did_you_mean(metric, joined.order)
            problems.append(f"the scores have no metric '{metric}': {hint}")
    if problems:
        raise UsageError(*problems)
    return labels


def find_label(labels: Iterable[str], metric: str) -> str | None:
    """Return the first label that is the metric's spec, possibly spelt differently."""
    spec = _spec(metric)
    return next((label for label in labels if label == metric or _spec(label) == spec), None)


def higher_is_better(label: str) -> bool:
    """Return whether higher values of a metric are better; True for unknown metrics."""
    return bool(getattr(metric_class(label), "higher_is_better", True))


def _spec(label: str) -> str:
    """Return a spec in its canonical spelling; a label that is no spec stays as it is."""
    try:
        return str(parse(label))
    except UsageError:
        return label


def metric_class(label: str) -> type | None:
    """Return the class of the metric of a label; None if Rejoinder has no such metric."""
    try:
        metric: type = METRICS.find(label.partition("(")[0])
        return metric
    except UsageError:
        return None


def _rank_label(joined: Joined, label: str, options: RankingOptions) -> Ranking:
    better = higher_is_better(label)
    reasons = joined.reasons.get(label, {})
    if label in joined.item_scores:
        ranking = rank_values(
            joined.items,
            joined.item_scores[label],
            by=label,
            higher_is_better=better,
            reasons={id: reason for (id, _), reason in reasons.items()},
            options=options,
        )
    elif label in joined.context_scores and not getattr(metric_class(label), "pooled", False):
        column = ContextStatistics(averaged, better)
        for (context, system), value in joined.context_scores[label].items():
            row = None if math.isnan(value) else np.array([value, 1.0])
            reason = reasons.get((context, system), "no value") if row is None else None
            column.add(system, context, row, reason)
        systems = list(dict.fromkeys(item.system for item in joined.items))
        ranking = replace(rank(column, systems, options), by=label)
    else:
        raise NotComparable(NOT_ADDITIVE)
    return replace(ranking, signature=joined.signatures.get(label) or None)


def _checked(rankings: list[Ranking], reasons: Mapping[str, str]) -> list[Ranking]:
    if not rankings:
        raise DataError("; ".join(f"{label}: {reason}" for label, reason in reasons.items()))
    return rankings


def _set_statistics(
    results: Iterable[SystemScore],
) -> tuple[dict[Metric, ContextStatistics], dict[Metric, str]]:
    """Return statistics of set metrics that average over contexts, and reasons for the others."""
    statistics: dict[Metric, ContextStatistics] = {}
    refused: dict[Metric, str] = {}
    for result in results:
        if result.metric.pooled:
            refused[result.metric] = NOT_ADDITIVE
            continue
        column = statistics.setdefault(
            result.metric, ContextStatistics(averaged, result.metric.higher_is_better)
        )
        for context, value in result.contexts.items():
            if isinstance(value, str):
                column.add(result.system, context, None, value)
            else:
                column.add(result.system, context, np.array([value, 1.0]), None)
    return statistics, refused


def rank(column: ContextStatistics, systems: Sequence[str], options: RankingOptions) -> Ranking:
    """Rank systems by the value of their summed statistics over the contexts that all share, and
    test pairs of them on the contexts that the two share.

    A system without any score, such as people whose replies are the references, does not keep the
    others from being compared: it is among ``unranked``.
    """
    scored = {system for system, _ in column.rows}
    ranked = [system for system in systems if system in scored]
    if not ranked:
        raise NotComparable(_why_not(column, systems))
    neighbours_only = len(ranked) > MAX_ALL_PAIRS
    table = _table(column, ranked, shared_only=neighbours_only)
    shared = int(np.count_nonzero(table.answered.all(axis=0)))
    with np.errstate(over="ignore"):
        if not np.isfinite(table.answered.shape[1] * np.abs(table.rows).max()):
            raise NotComparable("its values are too large to be summed up")
    tests = SystemTests(
        table.rows,
        column.finish,
        1 if column.higher_is_better else -1,
        options.seed,
        answered=table.answered,
    )
    baseline = ranked.index(options.baseline) if options.baseline in ranked else None
    order, pairs = tests.run(
        options.resamples, baseline, options.margin, neighbours_only=neighbours_only
    )
    marks = (
        [""] * len(ranked) if neighbours_only else letters(order.tolist(), pairs.matrix(), ALPHA)
    )
    return Ranking(
        shared,
        table.all_contexts - shared,
        [
            RankedSystem(ranked[i], float(tests.values[i]), *tests.interval(i), mark)
            for i, mark in zip(order.tolist(), marks, strict=True)
        ],
        _system_pairs(pairs, ranked),
        higher_is_better=column.higher_is_better,
        neighbours_only=neighbours_only,
        unranked=[system for system in systems if system not in scored],
        baseline=None if baseline is None else ranked[baseline],
        baseline_tests=_baseline_tests(pairs, baseline, ranked, options.margin),
    )


@dataclass(frozen=True)
class _Table:
    """Statistics of the contexts that can be used to compare systems."""

    rows: Floats
    """[systems, contexts, statistics]; 0 where there is none."""
    answered: NDArray[np.bool_]
    """[systems, contexts]: whether the system has statistics there."""
    all_contexts: int
    """Contexts with a reply of any of the systems, also those that can't be used."""


def _table(column: ContextStatistics, systems: Sequence[str], *, shared_only: bool) -> _Table:
    """Return the statistics of all contexts with at least two systems, or with all of them.

    Raises NotComparable if fewer than two contexts have all systems.
    """
    numbers = {system: number for number, system in enumerate(systems)}
    contexts: dict[str, list[int]] = {}
    for system, context in column.rows:
        if system in numbers:
            of_context = contexts.setdefault(context, [])
            if (system, context) not in column.missing:
                of_context.append(numbers[system])
    for system, context in column.missing:
        if system in numbers:
            contexts.setdefault(context, [])
    shared = sum(len(some) == len(systems) for some in contexts.values())
    if shared < 2:
        raise NotComparable(_why_not(column, systems, contexts.values()))
    needed = len(systems) if shared_only else min(2, len(systems))
    used = [context for context, some in contexts.items() if len(some) >= needed]
    answered = np.zeros((len(systems), len(used)), bool)
    width = len(next(iter(column.rows.values())))
    rows = np.zeros((len(systems), len(used), width))
    for place, context in enumerate(used):
        for number in contexts[context]:
            answered[number, place] = True
            rows[number, place] = column.rows[systems[number], context]
    return _Table(rows, answered, len(contexts))


def _system_pairs(tests: PairTests, systems: Sequence[str]) -> list[SystemPair]:
    """Return the tested pairs with the names of their systems."""
    columns = (tests.first, tests.second, tests.difference, tests.low, tests.high)
    p_values = (tests.p_bootstrap, tests.p_randomisation, tests.p_adjusted)
    rows = zip(*(column.tolist() for column in (*columns, *p_values, tests.contexts)), strict=True)
    return [
        SystemPair(
            systems[i], systems[j], difference, low, high, boot, _defined(p), _defined(adjusted), n
        )
        for i, j, difference, low, high, boot, p, adjusted, n in rows
    ]


def _baseline_tests(
    tests: PairTests, baseline: int | None, systems: Sequence[str], margin: float
) -> list[BaselineTest]:
    """Return the tests of the baseline, if there is one, against each other system."""
    if baseline is None:
        return []
    chosen = np.flatnonzero((tests.first == baseline) | (tests.second == baseline))
    p_values = holm((tests.p_margin if margin else tests.p_randomisation)[chosen])
    by_system: dict[int, BaselineTest] = {}
    for pair, p in zip(chosen.tolist(), p_values.tolist(), strict=True):
        ahead = tests.first[pair] == baseline
        other = int(tests.second[pair] if ahead else tests.first[pair])
        ends = float(tests.low[pair]), float(tests.high[pair])
        difference = float(tests.difference[pair])
        if not ahead:
            difference, ends = -difference, (-ends[1], -ends[0])
        worse = difference > margin and not math.isnan(p) and p < ALPHA
        by_system[other] = BaselineTest(
            systems[other], difference, *ends, _defined(p), worse, int(tests.contexts[pair])
        )
    return list(by_system.values())


def _defined(value: float) -> float | None:
    return None if math.isnan(value) else value


def _why_not(
    column: ContextStatistics, systems: Sequence[str], contexts: Collection[Sequence[int]] = ()
) -> str:
    """Say why systems can't be ranked; ``contexts`` are the numbers of the systems in each."""
    reasons = Counter[str]()
    for (system, reason), count in column.reasons.items():
        reasons[reason] += count if system in systems else 0
    commonest = reasons.most_common(1)
    if not column.rows and commonest:
        return f"no item could be scored: {commonest[0][0]}"
    hint = "is 'context_id' the same for all?"
    if commonest and commonest[0][1]:
        hint = f"{commonest[0][1]:,} unscored: {commonest[0][0]}"
    shared = sum(len(some) == len(systems) for some in contexts)
    alone_missing = Counter(
        (every - set(some)).pop()
        for every in [set(range(len(systems)))]
        for some in contexts
        if len(some) == len(systems) - 1
    )
    if len(systems) > 2 and alone_missing:
        number, count = alone_missing.most_common(1)[0]
        hint += f"; without {systems[number]} it would be {shared + count:,}"
    return (
        f"{shared} contexts were answered by all of {abbreviated(systems)} and could be scored;"
        f" comparing needs at least 2 ({hint})"
    )
