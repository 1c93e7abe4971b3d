"""``calibrate``: from scores to the scale of people, tested by cross-validation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rejoinder.errors import DataError, UsageError
from rejoinder.estimation.calibrate import (
    METHODS,
    CurvePoint,
    Method,
    Tested,
    cross_validate,
    fit_for,
    learning_curve,
    rating_scale,
)
from rejoinder.estimation.calibration_card import calibration_card
from rejoinder.estimation.people import check_one_scale
from rejoinder.estimation.rated_scores import RatedScores
from rejoinder.files.output import whole_folder
from rejoinder.files.paths import check_new_folder
from rejoinder.meta_evaluation.join import Joined, join
from rejoinder.meta_evaluation.ranking import find_labels, higher_is_better
from rejoinder.metrics.calibrated.folder import (
    CARD,
    MANIFEST,
    MODEL,
    Calibration,
    Input,
    Manifest,
    Numbers,
    write_calibration,
)
from rejoinder.metrics.calibrated.intervals import RatingScale
from rejoinder.metrics.calibrated.models import Blend
from rejoinder.verbs.arguments import SEED, as_names, check_number, check_resampling
from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.notes import keep_notes
from rejoinder.verbs.results import (
    FrameColumns,
    Svg,
    TableResult,
    records_to_columns,
    to_plain,
)
from rejoinder.verbs.scores import check_order, open_scores
from rejoinder.verbs.source import open_items
from rejoinder.wording import option

if TYPE_CHECKING:
    from rejoinder.files.columns import Columns
    from rejoinder.inputs.items import ItemsLike
    from rejoinder.verbs.scores import ScoresLike

FOLDS, MAX_FOLDS = 5, 50
COVERAGE = 0.9
DRAWS, MAX_DRAWS = 20, 1000


@dataclass(frozen=True)
class CalibrateResult(TableResult):
    """A calibration and its test.

    The frame has a row per point of the learning curve: the number of rated replies, Spearman's
    correlation and the error on other contexts, with their spread over random draws.
    """

    method: Method
    calibration: Calibration
    rated: RatedScores
    tested: Tested
    curve: list[CurvePoint]
    output: str | None = None
    notes: Sequence[str] = ()
    frame_kind: str | None = field(default=None, compare=False)

    @property
    def weights(self) -> dict[str, float]:
        """Of a blend: the change of the rating from the lowest to the highest score."""
        model = self.tested.model
        if not isinstance(model, Blend):
            return {}
        return dict(zip(self.rated.metrics, model.weights, strict=True))

    @property
    def needs_evaluator(self) -> bool:
        """Whether a metric of it needs the evaluator with which the scores were made."""
        return any("evaluator:" in each.signature for each in self.calibration.manifest.metrics)

    def columns(self) -> FrameColumns:
        return records_to_columns(to_plain(self.curve))

    def to_dict(self) -> dict[str, Any]:
        tested, manifest = self.tested, self.calibration.manifest
        return {
            "method": self.method,
            "rated": len(self.rated),
            "contexts": self.rated.contexts,
            "unscored": self.rated.unscored,
            "folds": len(tested.folds),
            "scale": to_plain(manifest.scale),
            "cross_validated": to_plain(tested.calibrated),
            "uncalibrated": to_plain(tested.uncalibrated),
            "mean_only": {"rmse": tested.mean_only.rmse, "mae": tested.mean_only.mae},
            "metrics": [
                {"metric": each.metric, "signature": each.signature, **to_plain(errors)}
                for each, errors in zip(manifest.metrics, tested.by_metric, strict=True)
            ],
            "weights": self.weights,
            "intervals": to_plain(tested.intervals),
            "curve": to_plain(self.curve),
            "warnings": tested.warnings,
            "output": self.output,
        }

    def plot(self) -> Svg:
        """Draw the learning curve."""
        from rejoinder.reporting.calibration_tables import curve_chart
        from rejoinder.reporting.plots.line_chart import line_chart_svg

        return Svg(line_chart_svg(curve_chart(self.curve)))


@keep_notes
def calibrate(
    items: ItemsLike,
    scores: ScoresLike,
    *,
    output: str | os.PathLike[str] | None = None,
    method: Method | None = None,
    metrics: str | Sequence[str] = (),
    prior: str | Sequence[str] = (),
    folds: int = FOLDS,
    coverage: float = COVERAGE,
    scale: tuple[float, float] | None = None,
    draws: int = DRAWS,
    columns: Columns | None = None,
    seed: int = SEED,
    problems: Sequence[str] = (),
    monitor: Monitor = SILENT,
) -> CalibrateResult:
    """Learn from rated items what scores mean on the scale of people, and test it.

    ``scores`` are scores of all items (the result of :func:`score`, or a file), of which the
    ``metrics`` are used (by default all). ``method`` is "isotonic" (a curve that never falls) or
    "ordinal" (a logistic regression over the levels of the scale), both of one metric, or "blend"
    (several metrics; ``prior`` names those that count if there are no ratings, by default all). By
    default it is "isotonic" for one metric and "blend" for several.

    All figures are cross-validated over ``folds`` of contexts. Intervals of single replies are made
    to cover the share ``coverage`` of the ratings. ``scale`` is the lowest and highest possible
    rating, by default those that occur. With ``output``, a folder is written, which
    ``calibrated(model=FOLDER)`` in :func:`score` applies. ``draws``: random draws for each point of
    the learning curve, 0 for none.
    """
    all_problems = [*problems, *_problems(method, scale)]
    if all_problems:
        raise UsageError(*all_problems)
    check_number("folds", folds, 2, MAX_FOLDS)
    check_number("draws", draws, 0, MAX_DRAWS)
    check_number("coverage", coverage, 0.5, 0.99, whole=False)
    check_resampling(0, seed)
    check_order(items, scores)
    if output is not None:
        check_new_folder(output, _is_calibration)
    with open_items(items, columns=columns, monitor=monitor) as source:
        lines = open_scores(scores)
        joined = join(
            list(source.read()),
            lines.lines,
            items_name=source.name or "items",
            scores_name=lines.name,
        )
        names = chosen_labels(joined, as_names(metrics), lines.name)
        chosen = method or ("isotonic" if len(names) == 1 else "blend")
        believed = _prior(joined, names, as_names(prior), chosen)
        check_one_scale(joined.items, scale)
        rated = RatedScores.of(joined, names)
        ratings_scale = _scale(rated, scale)
        fit = fit_for(chosen, believed)
        tested = cross_validate(
            rated,
            fit,
            ratings_scale,
            folds=folds,
            coverage=coverage,
            seed=seed,
            prior=believed,
        )
        with monitor.pieces("learning curve") as advance:
            curve = learning_curve(
                rated,
                fit,
                ratings_scale,
                draws=draws,
                seed=seed,
                prior=believed,
                on_progress=advance,
            )
    settings = {"folds": folds, "seed": seed, "prior": list(believed)}
    calibration = _calibration(joined, names, chosen, ratings_scale, coverage, settings, tested)
    result = CalibrateResult(
        chosen,
        calibration,
        rated,
        tested,
        curve,
        None if output is None else os.fspath(output),
        frame_kind=source.frame_kind,
    )
    if output is not None:
        _write(Path(output), result)
    for warning in tested.warnings:
        monitor.warn(warning)
    return result


def _problems(method: Any, scale: Any) -> list[str]:
    problems = []
    if method is not None and method not in METHODS:
        problems.append(f"method '{method}': expected {', '.join(METHODS)}")
    if scale is not None and not (len(scale) == 2 and scale[0] < scale[1]):
        problems.append("scale: expected the lowest and the highest possible rating")
    return problems


def chosen_labels(joined: Joined, metrics: Sequence[str], name: str) -> list[str]:
    """Return the labels of the metrics to use; those of sets of replies can't be."""
    wanted = find_labels(joined, metrics) if metrics else list(joined.item_scores)
    if sets := [label for label in wanted if label not in joined.item_scores]:
        raise UsageError(f"{', '.join(sets)}: scores sets of replies, not single ones")
    if not wanted:
        raise DataError("holds no scores of single replies", path=name)
    return wanted


def _prior(joined: Joined, names: Sequence[str], prior: Sequence[str], method: Method) -> list[str]:
    if method != "blend":
        if len(names) > 1:
            raise UsageError(
                f"{option('method', method)} calibrates one metric, and there are"
                f" {', '.join(names)}: name one with {option('metrics', names[0])}, or use"
                f" {option('method', 'blend')}"
            )
        if prior:
            raise UsageError(f"{option('prior')} can only be used with {option('method', 'blend')}")
        return []
    believed = find_labels(joined, prior) if prior else []
    if unused := [label for label in believed if label not in names]:
        raise UsageError(f"{option('prior')}: {', '.join(unused)} is not among the metrics used")
    return believed


def _scale(rated: RatedScores, scale: tuple[float, float] | None) -> RatingScale:
    return rating_scale(rated) if scale is None else rating_scale(rated, *scale)


def _calibration(
    joined: Joined,
    names: Sequence[str],
    method: Method,
    scale: RatingScale,
    coverage: float,
    settings: dict[str, Any],
    tested: Tested,
) -> Calibration:
    inputs = [
        Input(name, joined.signatures.get(name, ""), higher_is_better(name)) for name in names
    ]
    manifest = Manifest(
        method=method,
        metrics=inputs,
        scale=scale,
        coverage=coverage,
        settings=settings,
        measured={
            "cross_validated": to_plain(tested.calibrated),
            "uncalibrated": to_plain(tested.uncalibrated),
            "mean_only": to_plain(tested.mean_only),
            "intervals": to_plain(tested.intervals),
            "warnings": tested.warnings,
        },
    )
    return Calibration(
        manifest,
        Numbers(tested.model, tested.folds, tested.errors.tolist(), tested.fold.tolist()),
    )


def _write(target: Path, result: CalibrateResult) -> None:
    counts = {"rated": len(result.rated), "contexts": result.rated.contexts}
    card = calibration_card(result.calibration.manifest, counts, target.name)
    with whole_folder(target) as folder:
        write_calibration(folder, result.calibration, card)


def _is_calibration(folder: Path) -> bool:
    """Return whether a folder holds nothing but a calibration, which may be replaced."""
    return {path.name for path in folder.iterdir()} <= {MANIFEST, MODEL, CARD}
