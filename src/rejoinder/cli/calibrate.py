"""``rejoinder calibrate``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.monitor import TerminalMonitor
from rejoinder.cli.options import (
    ColumnsOption,
    ItemsArgument,
    JsonOption,
    OptionalMetricsOption,
    RatingScaleOption,
    ScoresArgument,
    SeedOption,
    SvgOption,
    count_option,
    decimal,
    output_folder,
    parse_columns,
    parse_scale,
    svg_problems,
)
from rejoinder.cli.terminal import draw, print_json, say, show
from rejoinder.verbs.arguments import SEED

if TYPE_CHECKING:
    from rejoinder.verbs.calibrate import CalibrateResult


class Method(StrEnum):
    """Choices of ``--method``."""

    isotonic = "isotonic"
    ordinal = "ordinal"
    blend = "blend"


def calibrate(
    items: ItemsArgument,
    scores: ScoresArgument,
    output: Annotated[
        Path | None, output_folder("Folder for calibrated(model=FOLDER); without it, only a test.")
    ] = None,
    method: Annotated[
        Method | None,
        typer.Option(
            "--method",
            metavar="NAME",
            help="isotonic, ordinal (one metric) or blend (several, the default for several).",
        ),
    ] = None,
    metric: OptionalMetricsOption = None,
    prior: Annotated[
        list[str] | None,
        typer.Option(
            "--prior",
            metavar="SPEC",
            help="For blend: a metric that has weight before any rating; by default all have.",
        ),
    ] = None,
    folds: Annotated[int, count_option("--folds", "Folds of contexts.", min=2, max=50)] = 5,
    coverage: Annotated[
        float,
        typer.Option(
            "--coverage",
            metavar="X",
            parser=decimal(0.5, 0.99),
            help="Share of ratings that intervals of single replies are to cover.",
        ),
    ] = 0.9,
    scale: RatingScaleOption = None,
    draws: Annotated[
        int,
        count_option("--draws", "Random draws for each point of the curve; 0: no curve.", min=0),
    ] = 20,
    svg: SvgOption = None,
    columns: ColumnsOption = None,
    json: JsonOption = False,
    seed: SeedOption = SEED,
) -> None:
    """Bring scores to the scale of people, learnt from some ratings.

    All figures are cross-validated by context. The folder is used as a metric: score -m
    'calibrated(model=FOLDER)' gives expected ratings, each with an interval. A warning says when
    the ratings are too few: when the result orders replies less well than the scores alone.
    """
    from rejoinder.files.paths import check_output
    from rejoinder.verbs.calibrate import calibrate as run

    problems = svg_problems(svg)
    if svg is not None and not draws:
        problems.append("--svg draws the curve: --draws must not be 0")
    parsed = parse_scale(scale, problems)
    check_output(svg, [items, scores])
    result = run(
        items,
        scores,
        output=output,
        method=None if method is None else method.value,
        metrics=metric or (),
        prior=prior or (),
        folds=folds,
        coverage=coverage,
        scale=parsed,
        draws=draws,
        columns=parse_columns(columns),
        seed=seed,
        problems=problems,
        monitor=TerminalMonitor(),
    )
    if svg is not None and not result.curve:
        say(f"{svg}: not drawn: a learning curve needs more rated replies")
    elif svg is not None:
        draw(svg, result.plot())
    if json:
        print_json(result)
    else:
        _print(result)


def _print(result: CalibrateResult) -> None:
    from rejoinder.reporting import calibration_tables as tables

    show(tables.quality_table(result.tested, result.rated.metrics))
    if result.weights:
        show(tables.weights_table(result.weights))
    show(tables.interval_table(result.tested.intervals))
    if result.curve:
        show(tables.curve_table(result.curve))
    rated, folds = len(result.rated), len(result.tested.folds)
    say(
        f"{result.method}: {rated:,} rated replies to {result.rated.contexts:,} contexts,"
        f" cross-validated in {folds} folds; intervals are to cover"
        f" {result.tested.intervals.wanted:.0%} of the ratings"
    )
    if result.rated.unscored:
        say(f"{result.rated.unscored:,} rated replies are unscored and left out")
    if result.output is not None:
        evaluator = " --evaluator DIR" if result.needs_evaluator else ""
        say(f"use it with: rejoinder score ITEMS -m 'calibrated(model={result.output})'{evaluator}")
