"""``meta``: how well metrics agree with people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from rejoinder.errors import UsageError
from rejoinder.items import Item, Score
from rejoinder.meta_evaluation.annotators import (
    DISTRACTOR,
    AnnotatorLimits,
    AnnotatorReview,
    FilteredRatings,
)
from rejoinder.meta_evaluation.correlate import Correlations, Statistic
from rejoinder.meta_evaluation.coverage import CoverageThird
from rejoinder.meta_evaluation.evaluation import (
    HUMAN,
    MetaEvaluation,
    MetaSettings,
    MetricResult,
    evaluate_metrics,
    metric_results,
)
from rejoinder.meta_evaluation.join import join
from rejoinder.meta_evaluation.ratings import annotator_names, label_by_system
from rejoinder.meta_evaluation.reference_curve import CurvePoint, reference_curve
from rejoinder.metrics.evaluate import evaluate, score_sets
from rejoinder.metrics.metric_set import make_metrics
from rejoinder.metrics.records import item_scores, set_scores
from rejoinder.verbs.annotators import check_annotators, check_distractor, limit_problems
from rejoinder.verbs.arguments import (
    MAX_DISTRACTOR,
    MIN_KAPPA,
    RESAMPLES,
    SEED,
    as_metrics,
    as_names,
    check_resampling,
    evaluator_folder,
)
from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.results import FrameColumns, Svg, TableResult, records_to_columns, to_plain
from rejoinder.verbs.safeguards import Safeguards, check_contamination, check_strict
from rejoinder.verbs.scores import (
    ScoreSource,
    check_order,
    open_scores,
    split_scores,
    warn_of_other_evaluator,
)
from rejoinder.verbs.source import open_items

if TYPE_CHECKING:
    from rejoinder.files.columns import Columns
    from rejoinder.inputs.items import ItemsLike
    from rejoinder.verbs.arguments import EvaluatorLike, Metrics
    from rejoinder.verbs.scores import ScoresLike


Level = Literal["item", "context", "system"]


@dataclass(frozen=True)
class MetaResult(TableResult, MetaEvaluation):
    """Correlations of metrics with people's ratings.

    The frame has a row per metric: the number of items; Spearman's, Pearson's and Kendall's
    correlation, each with its p-value and 95 % interval.
    """

    annotators: FilteredRatings | None = None
    """The annotators, and who was dropped."""
    before: list[MetricResult] | None = None
    """The results before annotators were dropped."""
    curves: dict[str, list[CurvePoint]] = field(default_factory=dict)
    """Correlation over the number of references, by metric."""
    safeguards: Safeguards = field(default_factory=Safeguards)
    statistic: Statistic = "spearman"
    correct: list[str] = field(default_factory=list)
    frame_kind: str | None = field(default=None, compare=False)

    def columns(self) -> FrameColumns:
        return records_to_columns(
            [
                {
                    "metric": result.metric,
                    "level": result.level,
                    "n": result.correlations.n,
                    "unscored": result.unscored,
                    **_spread(result.correlations),
                }
                for result in self.results
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "level": self.level,
            "rated": self.rated,
            "unrated": self.unrated,
            "results": [_result_to_dict(result) for result in self.results],
            "refused": self.refused,
            "differences": to_plain(self.differences),
            "humans": to_plain(self.humans),
            "curves": to_plain(self.curves),
            "by_coverage": [_third_to_dict(third) for third in self.by_coverage],
            "annotators": self._annotators_to_dict(),
            "contamination": self.safeguards.to_dict()["contamination"],
        }

    def _annotators_to_dict(self) -> dict[str, Any] | None:
        """Return the annotators before and after dropping; None if no rating names one."""
        filtered = self.annotators
        if filtered is None or not filtered.before.names:
            return None
        before = _review_to_dict(filtered.before)
        if self.before is not None:
            before["results"] = [_result_to_dict(result) for result in self.before]
        return {
            "before": before,
            "unreliable": to_plain(filtered.unreliable),
            "dropped": filtered.dropped,
            "after": None if filtered.after is None else _review_to_dict(filtered.after),
        }

    def _repr_html_(self) -> str:
        from rejoinder.reporting.html import correlations_html

        return correlations_html(self)

    def plot(self) -> Svg:
        """Draw the correlations with their intervals; the curves if there are any."""
        if self.curves:
            from rejoinder.reporting.meta_tables import curve_chart
            from rejoinder.reporting.plots.line_chart import line_chart_svg

            return Svg(line_chart_svg(curve_chart(self.curves, self.statistic)))
        from rejoinder.reporting.plots import correlations_svg

        return Svg(correlations_svg(self))


def meta(
    items: ItemsLike,
    metrics: Metrics | ScoresLike = (),
    *,
    scores: ScoresLike | None = None,
    level: Level = "item",
    statistic: Statistic = "spearman",
    human_system: str = HUMAN,
    correct: str | Sequence[str] = (),
    curve: bool = False,
    draws: int = 20,
    drop_annotators: Sequence[str] = (),
    drop_unreliable: bool = False,
    min_kappa: float = MIN_KAPPA,
    max_distractor: float = MAX_DISTRACTOR,
    distractor: str = DISTRACTOR,
    columns: Columns | None = None,
    language: str | None = None,
    evaluator: EvaluatorLike | None = None,
    any_language: bool = False,
    strict: bool = False,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    problems: Sequence[str] = (),
    monitor: Monitor = SILENT,
) -> MetaResult:
    """Correlate metrics with the ratings of the items.

    Give ``metrics``, which are scored first, or ``scores`` (the result of :func:`score`, or a
    file), which may be given in place of metrics. ``level`` says what is correlated: replies, the
    sets of replies to one context, or systems. ``statistic`` is used for the tests whether one
    metric agrees better than another. With ``correct``, no ratings are read: replies of these
    systems are correct, all others incorrect. ``curve`` adds the correlation over the number of
    references, with ``draws`` random draws a point. Annotators who hardly agree with the others
    (``min_kappa``) or prefer planted distractors (``max_distractor``) are listed, and left out with
    ``drop_unreliable``. ``problems`` of the caller are reported with those that are detected here.
    """
    metrics, scores = split_scores(metrics, scores)
    names, correct_systems = as_metrics(metrics), as_names(correct)
    all_problems = [
        *problems,
        *_problems(level, curve, correct_systems, drop_annotators, drop_unreliable),
        *limit_problems(min_kappa, max_distractor),
    ]
    if bool(names) == (scores is not None):
        all_problems.append("give either metrics or scores")
    if all_problems:
        raise UsageError(*all_problems)
    check_resampling(resamples, seed)
    folder = evaluator_folder(evaluator)
    check_strict(strict, folder is not None)
    if scores is not None:
        check_order(items, scores)
    with open_items(items, columns=columns, monitor=monitor) as source:
        replies = list(source.read())
        if correct_systems:
            replies = label_by_system(replies, correct_systems)
        if scores is None:
            scored = _scored(replies, names, language, folder, any_language, monitor)
            lines = ScoreSource(enumerate(scored, 1), "scores")
        else:
            lines = open_scores(scores)
        joined = join(
            replies,
            lines.lines,
            items_name=source.name or "items",
            scores_name=lines.name,
        )
        warn_of_other_evaluator(joined.signatures, folder, lines.name, monitor)
        # without the correct replies, all labels would be the same
        human = None if correct_systems else human_system
        settings = MetaSettings(resamples, seed, statistic, human)
        check_distractor(distractor, (item.system for item in replies))
        if drop_annotators:
            check_annotators(drop_annotators, annotator_names(replies))
        safeguards = _contamination(replies, folder, strict, monitor)
        annotators = FilteredRatings.of(
            replies,
            AnnotatorLimits(min_kappa, max_distractor),
            drop_annotators,
            drop_unreliable=drop_unreliable,
            distractor=distractor,
        )
        before = None
        if annotators.dropped:
            before = metric_results(joined, level, settings)
            replies = annotators.items
            joined = replace(joined, items=replies)
        evaluation = evaluate_metrics(joined, level, settings)
        curves = (
            _curves(replies, evaluation, draws, seed, folder, any_language, monitor)
            if curve
            else {}
        )
    return MetaResult(
        **vars(evaluation),
        annotators=annotators,
        before=before,
        curves=curves,
        safeguards=safeguards,
        statistic=statistic,
        correct=correct_systems,
        frame_kind=source.frame_kind,
    )


def _problems(
    level: str, curve: bool, correct: Sequence[str], drop: Sequence[str], unreliable: bool
) -> list[str]:
    problems = []
    if level not in ("item", "context", "system"):
        problems.append(f"level '{level}': expected item, context or system")
    if curve and level != "item":
        problems.append("the curve draws references of single replies: use level item")
    if correct and (drop or unreliable):
        problems.append("with correct systems no ratings are read: no annotator can be dropped")
    return problems


def _scored(
    items: Sequence[Item],
    specs: Sequence[Any],
    language: str | None,
    folder: str | None,
    any_language: bool,
    monitor: Monitor,
) -> list[Score]:
    metric_set = make_metrics(specs, language, folder)
    return [
        line
        for batch, results in evaluate(
            items, metric_set.item_metrics, any_language=any_language, on_note=monitor.warn
        )
        for line in item_scores(metric_set.labels, batch, results, parts=False)
    ] + set_scores(
        metric_set.labels, score_sets(items, metric_set.set_metrics, any_language=any_language)
    )


def _contamination(
    items: Sequence[Item], folder: str | None, strict: bool, monitor: Monitor
) -> Safeguards:
    if folder is None:
        return Safeguards()
    from rejoinder.evaluator import open_evaluator

    return check_contamination(items, [open_evaluator(folder)], strict=strict, monitor=monitor)


def _curves(
    items: Sequence[Item],
    evaluation: MetaEvaluation,
    draws: int,
    seed: int,
    folder: str | None,
    any_language: bool,
    monitor: Monitor,
) -> dict[str, list[CurvePoint]]:
    metric_set = make_metrics((result.metric for result in evaluation.results), evaluator=folder)
    metrics = metric_set.item_metrics
    points = reference_curve(
        items, metrics, draws=draws, seed=seed, any_language=any_language, on_note=monitor.warn
    )
    return {metric_set.labels[m]: row for m, row in zip(metrics, points, strict=True)}


def _review_to_dict(review: AnnotatorReview) -> dict[str, Any]:
    each = [asdict(one) for one in review.agreement.annotators]
    named = [{"name": one["name"], "ratings": one.pop("answers")} | one for one in each]
    return {"ratings": review.ratings, **asdict(review.agreement), "annotators": named}


def _result_to_dict(result: MetricResult) -> dict[str, Any]:
    """Return the statistics side by side in one flat object, as the contract says."""
    extra: Mapping[str, Any] = {
        "without_human": _flat(result.without_human) if result.without_human else None,
        "annotators": result.annotators,
        "pairwise_accuracy": to_plain(result.accuracy),
        "auc": result.auc,
        "recall_at_1": result.recall_at_1,
    }
    return {
        "metric": result.metric,
        "level": result.level,
        "n": result.correlations.n,
        "unscored": result.unscored,
        **_flat(result.correlations, count=False),
        **{key: value for key, value in extra.items() if value is not None},
    }


def _third_to_dict(third: CoverageThird) -> dict[str, Any]:
    return {
        "metric": third.metric,
        "by": third.by,
        "third": third.third,
        "from": third.low,
        "to": third.high,
        **_flat(third.correlations),
    }


def _flat(correlations: Correlations, *, count: bool = True) -> dict[str, Any]:
    flat: dict[str, Any] = {"n": correlations.n} if count else {}
    for name in ("spearman", "pearson", "kendall"):
        estimate = getattr(correlations, name)
        flat[name] = estimate.value
        flat[f"{name}_p"] = estimate.p
        flat[f"{name}_ci"] = None if estimate.low is None else [estimate.low, estimate.high]
    return flat


def _spread(correlations: Correlations) -> dict[str, float | None]:
    """Return the statistics as columns of a frame."""
    flat: dict[str, float | None] = {}
    for name in ("spearman", "pearson", "kendall"):
        value = asdict(getattr(correlations, name))
        flat |= {name if key == "value" else f"{name}_{key}": value[key] for key in value}
    return flat
