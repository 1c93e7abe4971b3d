"""``compare``: which system is better, and how sure that is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from rejoinder.errors import GateFailed, UsageError
from rejoinder.item_table import ItemTable
from rejoinder.items import Item
from rejoinder.meta_evaluation.join import join
from rejoinder.meta_evaluation.ranking import (
    NOT_ADDITIVE,
    Ranking,
    compare_people,
    compare_scores,
    compare_systems,
    worse_than_baseline,
)
from rejoinder.meta_evaluation.system_curve import SystemsPoint, system_curve
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.metric_set import make_metrics
from rejoinder.metrics.summary import blank_reply_notes
from rejoinder.verbs.arguments import (
    DRAWS,
    RANKING_RESAMPLES,
    SEED,
    as_metrics,
    check_number,
    check_resampling,
    evaluator_folder,
)
from rejoinder.verbs.drawing import drawable
from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.notes import keep_notes
from rejoinder.verbs.results import FrameColumns, Svg, TableResult, records_to_columns, to_plain
from rejoinder.verbs.safeguards import (
    Safeguards,
    check_contamination,
    check_strict,
    evaluators_of,
    report_notes,
)
from rejoinder.verbs.scores import (
    check_order,
    open_scores,
    split_scores,
    warn_of_other_evaluator,
)
from rejoinder.verbs.source import open_items

if TYPE_CHECKING:
    from rejoinder.files.columns import Columns
    from rejoinder.inputs.items import ItemsLike
    from rejoinder.metrics.batch_scores import BatchScores
    from rejoinder.metrics.metric_set import MetricSet
    from rejoinder.verbs.arguments import EvaluatorLike, Metrics
    from rejoinder.verbs.scores import ScoresLike

PEOPLE = "people"


class CompareResult(TableResult, Sequence[Ranking]):
    """A ranking of the systems by each metric, or by people's ratings.

    The frame has a row per metric and system, best first: ``value``, ``low``, ``high`` (95 %
    interval), ``group`` (systems that share a letter can't be told apart), ``contexts``.
    """

    def __init__(
        self,
        rankings: Sequence[Ranking],
        refused: Mapping[str, str],
        *,
        baseline: str | None = None,
        margin: float = 0.0,
        blank_replies: Mapping[str, int] | None = None,
        notes: Sequence[str] = (),
        safeguards: Safeguards | None = None,
        curves: Mapping[str, Sequence[SystemsPoint]] | None = None,
        frame_kind: str | None = None,
    ) -> None:
        self.rankings = list(rankings)
        self.refused = dict(refused)
        """Metric → why the systems can't be compared by it."""
        self.baseline, self.margin = baseline, margin
        self.blank_replies = dict(blank_replies or {})
        self.notes = list(notes)
        """What the metrics say about these values, and the notes and warnings of the verb."""
        self.safeguards = safeguards or Safeguards()
        self.curves = {name: list(points) for name, points in (curves or {}).items()}
        """Metric → the systems' values by number of references, if asked for."""
        self.frame_kind = frame_kind

    @overload
    def __getitem__(self, index: int) -> Ranking: ...
    @overload
    def __getitem__(self, index: slice) -> list[Ranking]: ...
    def __getitem__(self, index: int | slice) -> Ranking | list[Ranking]:
        return self.rankings[index]

    def __len__(self) -> int:
        return len(self.rankings)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CompareResult) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<CompareResult by {', '.join(ranking.by for ranking in self)}>"

    def columns(self) -> FrameColumns:
        return records_to_columns(
            [
                {
                    "metric": ranking.by,
                    "system": each.system,
                    "value": each.value,
                    "low": each.low,
                    "high": each.high,
                    "group": each.group,
                    "contexts": ranking.contexts,
                }
                for ranking in self
                for each in ranking.systems
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "results": [
                {
                    "metric": ranking.by,
                    "signature": ranking.signature,
                    "contexts": ranking.contexts,
                    "left_out": ranking.left_out,
                    "neighbours_only": ranking.neighbours_only,
                    "unranked": ranking.unranked,
                    "systems": to_plain(ranking.systems),
                    "pairs": to_plain(ranking.pairs),
                    "baseline_tests": to_plain(ranking.baseline_tests),
                }
                for ranking in self
            ],
            "curves": to_plain(self.curves),
            "refused": self.refused,
            "blank_replies": self.blank_replies,
            "notes": self.notes,
            **self.safeguards.to_dict(),
        }

    def _repr_html_(self) -> str:
        from rejoinder.reporting.html import ranking_html

        return "".join(ranking_html(ranking) for ranking in self)

    def plot(self, metric: str | None = None) -> Svg:
        """Draw the systems with their intervals, by one metric (the first by default), or, if there
        is one, its curve by number of references."""
        from rejoinder.reporting.plots import ranking_svg

        curves = {name: points for name, points in self.curves.items() if metric in (None, name)}
        for name, points in curves.items():
            from rejoinder.reporting.plots.line_chart import line_chart_svg
            from rejoinder.reporting.system_curve import system_chart

            return Svg(line_chart_svg(system_chart(name, points)))
        chosen = [each for each in self if metric in (None, each.by)]
        if not chosen:
            raise UsageError(f"the systems were not compared by {metric}")
        return Svg(ranking_svg(chosen[0]))

    def fail_if_worse(self) -> None:
        """Raise GateFailed if a system is significantly worse than the baseline.

        It is worse if the difference, in the contexts that both answered, exceeds the margin, and
        that is significant at the 5 % level after correction for all tests against the baseline. A
        system or metric that can't be compared fails, too.
        """
        if self.baseline is None:
            raise UsageError("worse than which system? Give compare(…, baseline='NAME')")
        failed = [
            f"{name}: not compared: {reason}"
            for name, reason in self.refused.items()
            if reason != NOT_ADDITIVE  # such a metric can never be compared
        ]
        for ranking in self:
            failed += [f"{ranking.by}: {name}: not compared: no score" for name in ranking.unranked]
            failed += [
                f"{ranking.by}: {test.system} is worse than {self.baseline} by"
                f" {abs(test.difference):.4f} (p = {_p(test.p)}, {test.contexts:,} contexts)"
                for test in worse_than_baseline(ranking)
            ]
        if failed:
            raise GateFailed("; ".join(failed))


@keep_notes
def compare(
    items: ItemsLike,
    metrics: Metrics | ScoresLike = (),
    *,
    scores: ScoresLike | None = None,
    by: Literal["people"] | None = None,
    baseline: str | None = None,
    margin: float = 0.0,
    columns: Columns | None = None,
    language: str | None = None,
    evaluator: EvaluatorLike | None = None,
    any_language: bool = False,
    strict: bool = False,
    curve: bool = False,
    draws: int = DRAWS,
    keep_first: bool = False,
    resamples: int = RANKING_RESAMPLES,
    seed: int = SEED,
    monitor: Monitor = SILENT,
) -> CompareResult:
    """Rank systems with confidence intervals, significance tests and groups of equals.

    They are ranked by ``metrics``, by ``scores`` (the result of :func:`score`, or a file), which
    may be given in place of metrics, or ``by="people"``: by the mean rating. A metric by which they
    can't be compared is in ``result.refused``; if that is so for all, it is a DataError. With a
    ``baseline``, every other system is tested against it: see :meth:`CompareResult.fail_if_worse`.
    ``curve`` adds the systems' values over the number of references, drawn ``draws`` times; with
    ``keep_first`` the first reference, which may be the original reply, is in each draw.
    """
    metrics, scores = split_scores(metrics, scores)
    names = as_metrics(metrics)
    if by not in (None, PEOPLE):
        raise UsageError(f"by={by!r}: expected 'people'")
    if not names and scores is None and by is None:
        raise UsageError("compare by what? Give metrics, scores, or by='people'")
    if by is not None and (names or scores is not None):
        raise UsageError("by='people' ranks by the ratings of the items: give no metrics or scores")
    check_resampling(resamples, seed, min_resamples=1)
    check_number("margin", margin, 0, math.inf, whole=False)
    check_number("draws", draws, 1, math.inf)
    if curve and not names:
        raise UsageError("the curve draws references and scores again: give metrics")
    if keep_first and not curve:
        raise UsageError("keep_first belongs to the curve: give curve=True")
    if baseline is not None and not isinstance(baseline, str):
        raise UsageError(f"baseline={baseline!r}: expected the name of a system")
    folder = evaluator_folder(evaluator)
    options: dict[str, Any] = {
        "resamples": resamples,
        "seed": seed,
        "baseline": baseline,
        "margin": margin,
    }
    blank = Counter[str]()
    notes: list[str] = []
    safeguards = Safeguards()
    curves: dict[str, list[SystemsPoint]] = {}

    def counted(items: Iterator[Item]) -> Iterator[Item]:
        for item in items:
            if not item.response.strip():
                blank[item.system] += 1
            yield item

    if by is not None or scores is not None:
        from rejoinder.evaluator import open_evaluator

        check_strict(strict, folder is not None)
        if scores is not None:
            check_order(items, scores)
        with open_items(items, columns=columns, monitor=monitor) as source:
            replies = list(counted(source.read()))
            if folder is not None:
                opened = [open_evaluator(folder)]
                safeguards = check_contamination(replies, opened, strict=strict, monitor=monitor)
            if scores is None:
                rankings, refused = compare_people(replies, **options)
            else:
                lines = open_scores(scores)
                joined = join(
                    replies,
                    lines.lines,
                    items_name=source.name or "items",
                    scores_name=lines.name,
                )
                warn_of_other_evaluator(joined.signatures, folder, lines.name, monitor)
                rankings, refused = compare_scores(joined, metrics=names or None, **options)
    else:
        metric_set = make_metrics(names, language, folder)
        evaluators = evaluators_of(metric_set, folder, strict=strict)
        twice = bool(evaluators) or curve
        with open_items(items, columns=columns, twice=twice, monitor=monitor) as source:
            safeguards = check_contamination(
                source.read() if evaluators else (), evaluators, strict=strict, monitor=monitor
            )
            batches = evaluate(
                counted(source.read()),
                metric_set.item_metrics,
                strict=False,
                test_set=safeguards.test_set,
                any_language=any_language,
                on_note=monitor.warn,
                on_message=monitor.message,
            )
            with monitor.stream("scoring", source.fraction) as advance:
                watched = _with_progress(safeguards.watch(batches), advance)
                rankings, refused = compare_systems(metric_set, watched, **options)
            if curve:
                drawn = list(source.read())
                curves = _curves(
                    drawn,
                    metric_set,
                    monitor,
                    draws=draws,
                    seed=seed,
                    keep_first=keep_first,
                    test_set=safeguards.test_set,
                )
        notes = metric_set.notes()
    notes += blank_reply_notes(blank)
    report_notes(notes, safeguards, monitor)
    return CompareResult(
        rankings,
        refused,
        baseline=baseline,
        margin=margin,
        blank_replies=blank,
        notes=notes,
        safeguards=safeguards,
        curves=curves,
        frame_kind=source.frame_kind,
    )


def _curves(
    items: Sequence[Item],
    metric_set: MetricSet,
    monitor: Monitor,
    **settings: Any,
) -> dict[str, list[SystemsPoint]]:
    metrics = drawable(metric_set, monitor)
    points = system_curve(items, metrics, **settings)
    return {metric_set.labels[m]: row for m, row in zip(metrics, points, strict=True)}


def _with_progress(
    batches: Iterable[tuple[ItemTable, list[BatchScores]]], advance: Callable[[int], None]
) -> Iterator[tuple[ItemTable, list[BatchScores]]]:
    """Pass scored batches through and report the number of items done."""
    done = 0
    for batch, results in batches:
        yield batch, results
        done += len(batch)
        advance(done)


def _p(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3g}"
