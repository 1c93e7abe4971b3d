"""Tables and chart of a calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table

from rejoinder.estimation.calibrate import CurvePoint, IntervalCheck, Tested
from rejoinder.reporting.plots.line_chart import Line, LineChart
from rejoinder.reporting.tables import number, plain_table


def quality_table(tested: Tested, metrics: Sequence[str]) -> Table:
    """Return what the calibration is worth beside the scores alone, and beside no scores."""
    table = plain_table(
        *("", "Spearman", "Pearson", "error"),
        right=(1, 2, 3),
        title="Cross-validated correlation with ratings, and error (RMSE)",
    )
    rows = [("calibrated", tested.calibrated)]
    if len(metrics) > 1:
        rows.append(("the blend without ratings", tested.uncalibrated))
    rows += zip(metrics, tested.by_metric, strict=True)
    for name, errors in rows:
        table.add_row(name, number(errors.spearman), number(errors.pearson), number(errors.rmse, 3))
    table.add_row("the mean rating", "", "", number(tested.mean_only.rmse, 3))
    return table


def interval_table(check: IntervalCheck) -> Table:
    """Return how many ratings the intervals covered, by system and by coverage of the pool."""
    table = plain_table(
        *("replies", "n", "covered", "width"),
        right=(1, 2, 3),
        title="Intervals of single replies: share of ratings covered, mean width",
    )
    groups = [*check.by_system] if len(check.by_system) > 1 else []
    for each in (*groups, *check.by_pool):
        table.add_row(each.name, f"{each.n:,}", f"{each.covered:.3f}", f"{each.width:.2f}")
    total = sum(each.n for each in check.by_system)
    table.add_row("all", f"{total:,}", f"{check.covered:.3f}", f"{check.width:.2f}")
    return table


def weights_table(weights: Mapping[str, float]) -> Table:
    """Return how far the rating changes with each metric."""
    table = plain_table("metric", "weight", right=(1,), title="Weights of the blend")
    for name, weight in weights.items():
        table.add_row(name, f"{weight:+.3f}")
    return table


def curve_table(curve: Sequence[CurvePoint]) -> Table:
    """Return the learning curve over the number of rated replies."""
    table = plain_table(
        *("rated", "Spearman", "±", "without ratings", "error", "±", "error of the mean"),
        right=range(7),
        title="Learning curve: results on other contexts, by the number of rated replies",
    )
    for point in curve:
        table.add_row(
            f"{point.ratings:,}",
            number(point.spearman, 3),
            number(point.spearman_std, 3),
            number(point.uncalibrated, 3),
            number(point.rmse, 3),
            number(point.rmse_std, 3),
            number(point.mean_rmse, 3),
        )
    return table


def curve_chart(curve: Sequence[CurvePoint]) -> LineChart:
    """Return Spearman's correlation over the number of rated replies as a chart."""
    x = [point.ratings for point in curve]
    calibrated = Line(
        "calibrated",
        x,
        [point.spearman for point in curve],
        [_ends(point, -1) for point in curve],
        [_ends(point, 1) for point in curve],
    )
    without = Line("without ratings", x, [point.uncalibrated for point in curve])
    title = "Correlation with people by number of rated replies"
    return LineChart(
        title,
        "rated replies",
        "Spearman correlation",
        [calibrated, without],
        "standard deviation over random draws",
    )


def _ends(point: CurvePoint, side: int) -> float | None:
    if point.spearman is None or point.spearman_std is None:
        return None
    return point.spearman + side * point.spearman_std
