"""``meta``: how well metrics agree with people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from rejoinder.errors import UsageError
from rejoinder.inputs.set_ratings import SetRatingsLike, read_set_ratings
from rejoinder.items import Item, Score
from rejoinder.meta_evaluation.annotators import (
    DISTRACTOR,
    AnnotatorLimits,
    FilteredRatings,
    Resampling,
)
from rejoinder.meta_evaluation.correlate import Statistic
from rejoinder.meta_evaluation.dialogues import TURNS
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
from rejoinder.meta_evaluation.set_ratings import match_sets, rated_sets
from rejoinder.metrics.evaluate import evaluate, score_sets
from rejoinder.metrics.metric_set import make_metrics
from rejoinder.metrics.records import item_scores, set_scores
from rejoinder.trust.review import JudgesReview
from rejoinder.verbs.annotators import check_annotators, check_distractor, limit_problems
from rejoinder.verbs.arguments import (
    MAX_DISTRACTOR,
    MIN_KAPPA,
    RESAMPLES,
    SEED,
    as_metrics,
    as_names,
    as_paths,
    check_resampling,
    evaluator_folder,
)
from rejoinder.verbs.drawing import drawable
from rejoinder.verbs.meta_judges import JudgeQuestions, judges_to_dict
from rejoinder.verbs.meta_records import (
    annotators_to_dict,
    result_to_dict,
    spread,
    third_to_dict,
)
from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.notes import keep_notes
from rejoinder.verbs.results import FrameColumns, Svg, TableResult, records_to_columns, to_plain
from rejoinder.verbs.safeguards import Safeguards, check_contamination, check_strict
from rejoinder.verbs.scores import (
    ScoreSource,
    check_order,
    open_scores,
    split_scores,
    warn_of_other_evaluator,
)
from rejoinder.verbs.source import naming, open_items, path_of
from rejoinder.wording import option

if TYPE_CHECKING:
    from rejoinder.files.columns import Columns
    from rejoinder.files.paths import AnyPath
    from rejoinder.inputs.items import ItemsLike
    from rejoinder.verbs.arguments import EvaluatorLike, Metrics
    from rejoinder.verbs.scores import ScoresLike


Level = Literal["item", "context", "system", "dialogue"]
Turns = Literal["mean", "min", "last", "learned"]


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
    judges: JudgesReview | None = None
    """The review of the judges, if there are some or it was asked for."""
    frame_kind: str | None = field(default=None, compare=False)

    def columns(self) -> FrameColumns:
        return records_to_columns(
            [
                {
                    "metric": result.metric,
                    "level": result.level,
                    "n": result.correlations.n,
                    "unscored": result.unscored,
                    **spread(result.correlations),
                }
                for result in self.results
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "level": self.level,
            "rated": self.rated,
            "unrated": self.unrated,
            "results": [result_to_dict(result) for result in self.results],
            "refused": self.refused,
            "differences": to_plain(self.differences),
            "humans": to_plain(self.humans),
            "curves": to_plain(self.curves),
            "by_coverage": [third_to_dict(third) for third in self.by_coverage],
            "annotators": annotators_to_dict(self.annotators, self.before),
            "contamination": self.safeguards.to_dict()["contamination"],
            "judges": judges_to_dict(self.judges),
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


@keep_notes
def meta(
    items: ItemsLike,
    metrics: Metrics | ScoresLike = (),
    *,
    scores: ScoresLike | None = None,
    level: Level = "item",
    turns: Turns = "mean",
    statistic: Statistic = "spearman",
    human_system: str = HUMAN,
    correct: str | Sequence[str] = (),
    curve: bool = False,
    draws: int = 20,
    set_ratings: SetRatingsLike | None = None,
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
    as_judges: bool = False,
    epsilon: float | None = None,
    own_systems: Sequence[str] = (),
    again: ScoresLike | None = None,
    costs: AnyPath | None = None,
    answers: AnyPath | Sequence[AnyPath] = (),
    resamples: int = RESAMPLES,
    seed: int = SEED,
    problems: Sequence[str] = (),
    monitor: Monitor = SILENT,
) -> MetaResult:
    """Correlate metrics with the ratings of the items.

    Give ``metrics``, which are scored first, or ``scores`` (the result of :func:`score`, or a
    file), which may be given in place of metrics. ``level`` says what is correlated: replies, the
    sets of replies to one context, systems, or whole dialogues, which have ``dialogue_ratings`` and
    whose scores are made of those of their ``turns``: the mean, the minimum, the last, or a sum
    with weights that are learnt by cross-validation. ``statistic`` is used for the tests whether
    one metric agrees better than another. With ``correct``, no ratings are read: replies of these
    systems are correct, all others incorrect. ``curve`` adds the correlation over the number of
    references, with ``draws`` random draws a point. Annotators who hardly agree with the others
    (``min_kappa``) or prefer planted distractors (``max_distractor``) are listed, and left out with
    ``drop_unreliable``. At level "context", ``set_ratings`` are people's ratings of whole sets, as
    of their diversity (a file, or dictionaries with context_id, system and ratings); those of
    single replies are not read then.

    If a metric is a judge, or with ``as_judges``, ``result.judges`` says whether metrics may stand
    in for an annotator (up to ``epsilon`` worse), which biases they have, whether they repeat
    themselves, and what they cost. ``own_systems`` use the judges' own model; ``again`` are scores
    of a second run, ``costs`` the file of :func:`score`, ``answers`` those of judges of pairs.
    ``problems`` of the caller are reported with those that are
    detected here.
    """
    metrics, scores = split_scores(metrics, scores)
    names, correct_systems = as_metrics(metrics), as_names(correct)
    questions = JudgeQuestions(
        as_judges, epsilon, as_names(own_systems), again, costs, as_paths(answers)
    )
    all_problems = [
        *problems,
        *questions.problems(level, correct_systems),
        *_problems(level, curve, correct_systems, drop_annotators, drop_unreliable),
        *_dialogue_problems(level, turns, correct_systems, drop_annotators, drop_unreliable),
        *_set_problems(items, scores, set_ratings, level, correct_systems),
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
    sets = None if set_ratings is None else read_set_ratings(set_ratings, monitor.note)
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
        judged = replies
        if sets is not None:
            with naming(path_of(set_ratings)):
                matched, others = match_sets(rated_sets(sets), replies)
            if others:
                count = len(others) + len(matched)
                monitor.warn(f"{len(others):,} of {count:,} rated sets are not among the items")
            judged = list(matched.values())
            joined = replace(joined, rated_sets=matched)
        # without the correct replies, all labels would be the same
        human = None if correct_systems else human_system
        settings = MetaSettings(resamples, seed, statistic, human, turns)
        check_distractor(distractor, (item.system for item in replies))
        if drop_annotators:
            check_annotators(drop_annotators, annotator_names(judged))
        safeguards = _contamination(replies, folder, strict, monitor)
        with naming(path_of(set_ratings)):
            annotators = FilteredRatings.of(
                judged,
                AnnotatorLimits(min_kappa, max_distractor),
                drop_annotators,
                drop_unreliable=drop_unreliable,
                distractor=distractor,
                resampling=Resampling(resamples, seed),
            )
        before = None
        if annotators.dropped:
            before = metric_results(joined, level, settings)
            if sets is None:
                replies = annotators.items
                joined = replace(joined, items=replies)
            else:
                joined = replace(joined, rated_sets=rated_sets(annotators.items))
        evaluation = evaluate_metrics(joined, level, settings)
        judges = None
        if level == "item" and not correct_systems and questions.wanted(joined):
            judges = questions.review(joined, Resampling(resamples, seed))
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
        judges=judges,
        frame_kind=source.frame_kind,
    )


def _problems(
    level: str, curve: bool, correct: Sequence[str], drop: Sequence[str], unreliable: bool
) -> list[str]:
    problems = []
    if level not in ("item", "context", "system", "dialogue"):
        problems.append(f"level '{level}': expected item, context, system or dialogue")
    if curve and level != "item":
        problems.append("the curve draws references of single replies: use level item")
    if correct and (drop or unreliable):
        problems.append("with correct systems no ratings are read: no annotator can be dropped")
    return problems


def _dialogue_problems(
    level: str, turns: str, correct: Sequence[str], drop: Sequence[str], unreliable: bool
) -> list[str]:
    problems = []
    if turns not in TURNS:
        problems.append(f"turns '{turns}': expected {', '.join(TURNS)}")
    if level != "dialogue":
        if turns != "mean":
            problems.append(f"{option('turns', turns)} can only be used with level dialogue")
        return problems
    if correct:
        problems.append("with correct systems no ratings are read, neither those of dialogues")
    if drop or unreliable:
        problems.append("annotators can't be dropped at level dialogue; take them out of the file")
    return problems


def _set_problems(
    items: Any, scores: Any, set_ratings: Any, level: str, correct: Sequence[str]
) -> list[str]:
    problems: list[str] = []
    if set_ratings is None:
        return problems
    if level != "context":
        problems.append(
            f"{option('set_ratings')} rates sets of replies: add {option('level', 'context')}"
        )
    if correct:
        problems.append("with correct systems no ratings are read, neither those of sets")
    if path_of(set_ratings) == "-" and "-" in (path_of(items), path_of(scores)):
        problems.append("only one of the files can be stdin")
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
            items,
            metric_set.item_metrics,
            any_language=any_language,
            on_note=monitor.warn,
            on_message=monitor.message,
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
    metrics = drawable(metric_set, monitor)
    if not metrics:
        return {}
    points = reference_curve(
        items, metrics, draws=draws, seed=seed, any_language=any_language, on_note=monitor.warn
    )
    return {metric_set.labels[m]: row for m, row in zip(metrics, points, strict=True)}
