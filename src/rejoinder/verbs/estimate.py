"""``estimate``: mean ratings of the systems from ratings of some replies and scores of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rejoinder.errors import UsageError
from rejoinder.estimation.estimates import (
    CONFIDENCE,
    METHODS,
    Estimates,
    Method,
    estimate_systems,
    standard_scores,
)
from rejoinder.estimation.prediction_powered import TARGETS, Target
from rejoinder.meta_evaluation.join import Joined, join
from rejoinder.verbs.arguments import SEED, as_names, check_number, check_resampling
from rejoinder.verbs.calibrate import FOLDS, MAX_FOLDS, chosen_labels
from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.notes import keep_notes
from rejoinder.verbs.results import FrameColumns, Svg, TableResult, records_to_columns, to_plain
from rejoinder.verbs.scores import check_order, open_scores
from rejoinder.verbs.source import open_items

if TYPE_CHECKING:
    from rejoinder.files.columns import Columns
    from rejoinder.inputs.items import ItemsLike
    from rejoinder.verbs.scores import ScoresLike


@dataclass(frozen=True)
class EstimateResult(TableResult):
    """Mean ratings of the systems, and their differences, with intervals.

    The frame has a row per system, highest first: its mean and interval, those of people alone and
    of the metric alone, the number of rated replies and how many they are worth with the metric.
    """

    estimates: Estimates
    notes: Sequence[str] = ()
    frame_kind: str | None = field(default=None, compare=False)

    def columns(self) -> FrameColumns:
        return records_to_columns(
            [
                {
                    "system": each.system,
                    "mean": each.mean,
                    "low": each.ci and each.ci[0],
                    "high": each.ci and each.ci[1],
                    "people_only": each.people_only.mean,
                    "people_only_low": each.people_only.ci and each.people_only.ci[0],
                    "people_only_high": each.people_only.ci and each.people_only.ci[1],
                    "metric_only": each.metric_only.mean,
                    "ratings": each.ratings,
                    "effective_ratings": each.effective_ratings,
                    "group": each.group,
                }
                for each in self.estimates.systems
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        estimates = self.estimates
        return {
            "systems": to_plain(estimates.systems),
            "pairs": to_plain(estimates.pairs),
            "metrics": estimates.metrics,
            "method": estimates.method,
            "target": estimates.target,
            "confidence": estimates.confidence,
            "people": to_plain(estimates.people),
            "ratings": estimates.ratings,
            "effective_ratings": estimates.effective_ratings,
            "unscored": estimates.unscored,
            "notes": list(self.notes),
        }

    def plot(self) -> Svg:
        """Draw people alone, the metric alone and both as intervals, by system."""
        from rejoinder.reporting.estimate_tables import estimates_svg

        return Svg(estimates_svg(self.estimates))


@keep_notes
def estimate(
    items: ItemsLike,
    scores: ScoresLike,
    *,
    metrics: str | Sequence[str] = (),
    method: Method = "linear",
    target: Target = "contexts",
    confidence: float = CONFIDENCE,
    folds: int = FOLDS,
    scale: tuple[float, float] | None = None,
    columns: Columns | None = None,
    seed: int = SEED,
    problems: Sequence[str] = (),
    monitor: Monitor = SILENT,
) -> EstimateResult:
    """Estimate how people rate each system, from ratings of some replies and scores of all.

    ``scores`` are scores of all items (the result of :func:`score`, or a file). Of several
    ``metrics`` (by default all of the scores) the mean of their standard scores is used. The
    estimates are unbiased whatever the metric is worth, if the rated replies were drawn at random,
    or with the probabilities in ``inclusion_probability``; the interval is narrower the better it
    is.

    ``method`` brings scores to the scale of people: "linear", or "isotonic" (a curve that never
    falls, cross-fitted in ``folds`` of contexts). ``target`` is what the means are about: contexts
    like these ("contexts"), or just these replies ("replies"). ``scale`` is the lowest and highest
    possible rating; a rating outside of it is an error.
    """
    all_problems = [*problems, *_problems(method, target, scale)]
    if all_problems:
        raise UsageError(*all_problems)
    check_number("folds", folds, 2, MAX_FOLDS)
    check_number("confidence", confidence, 0.5, 0.999, whole=False)
    check_resampling(0, seed)
    check_order(items, scores)
    with open_items(items, columns=columns, monitor=monitor) as source:
        lines = open_scores(scores)
        joined = join(
            list(source.read()),
            lines.lines,
            items_name=source.name or "items",
            scores_name=lines.name,
        )
        names = chosen_labels(joined, as_names(metrics), lines.name)
        estimates = estimate_joined(
            joined,
            names,
            method=method,
            target=target,
            confidence=confidence,
            folds=folds,
            scale=scale,
            seed=seed,
        )
    return report_estimates(estimates, monitor, source.frame_kind)


def estimate_joined(joined: Joined, names: Sequence[str], **settings: Any) -> Estimates:
    """Estimate from joined items and scores, by one metric or the mean of several."""
    scores = standard_scores(joined, names)
    return estimate_systems(joined.items, scores, names, **settings)


def report_estimates(
    estimates: Estimates, monitor: Monitor, frame_kind: str | None
) -> EstimateResult:
    """Return the result, and give its warnings and notes."""
    for warning in estimates.warnings:
        monitor.warn(warning)
    for note in estimates.notes:
        monitor.note(note)
    return EstimateResult(estimates, [*estimates.warnings, *estimates.notes], frame_kind=frame_kind)


def _problems(method: Any, target: Any, scale: Any) -> list[str]:
    problems = []
    if method not in METHODS:
        problems.append(f"method '{method}': expected {', '.join(METHODS)}")
    if target not in TARGETS:
        problems.append(f"target '{target}': expected {', '.join(TARGETS)}")
    if scale is not None and not (len(scale) == 2 and scale[0] < scale[1]):
        problems.append("scale: expected the lowest and the highest possible rating")
    return problems
