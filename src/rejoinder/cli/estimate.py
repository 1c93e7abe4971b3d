"""``rejoinder estimate``."""

from __future__ import annotations

from enum import StrEnum
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
    parse_columns,
    parse_scale,
    svg_problems,
)
from rejoinder.cli.terminal import draw, print_json, say, show
from rejoinder.verbs.arguments import SEED

if TYPE_CHECKING:
    from rejoinder.verbs.estimate import EstimateResult


class Method(StrEnum):
    """Choices of ``--method``."""

    linear = "linear"
    isotonic = "isotonic"


class Target(StrEnum):
    """Choices of ``--target``."""

    contexts = "contexts"
    replies = "replies"


def estimate(
    items: ItemsArgument,
    scores: ScoresArgument,
    metric: OptionalMetricsOption = None,
    method: Annotated[
        Method,
        typer.Option(
            "--method",
            metavar="NAME",
            help="From scores to ratings: linear, or isotonic (a curve that never falls).",
        ),
    ] = Method.linear,
    target: Annotated[
        Target,
        typer.Option(
            "--target",
            metavar="NAME",
            help="What the means are about: contexts (like these), or replies (just these).",
        ),
    ] = Target.contexts,
    confidence: Annotated[
        float,
        typer.Option(
            "--confidence",
            metavar="X",
            parser=decimal(0.5, 0.999),
            help="Confidence level of the intervals.",
        ),
    ] = 0.95,
    folds: Annotated[
        int, count_option("--folds", "Folds of contexts, for isotonic.", min=2, max=50)
    ] = 5,
    scale: RatingScaleOption = None,
    svg: SvgOption = None,
    columns: ColumnsOption = None,
    json: JsonOption = False,
    seed: SeedOption = SEED,
) -> None:
    """Estimate how people rate each system, from ratings of some replies and scores of all.

    The estimates are unbiased whatever the metric is worth, if the rated replies were drawn at
    random; the better the metric, the narrower the intervals. Beside them: people alone, the metric
    alone, and how many ratings the metric was worth. Of several metrics the mean of their standard
    scores is used.
    """
    from rejoinder.files.paths import check_output
    from rejoinder.verbs.estimate import estimate as run

    problems = svg_problems(svg)
    parsed = parse_scale(scale, problems)
    check_output(svg, [items, scores])
    result = run(
        items,
        scores,
        metrics=metric or (),
        method=method.value,
        target=target.value,
        confidence=confidence,
        folds=folds,
        scale=parsed,
        columns=parse_columns(columns),
        seed=seed,
        problems=problems,
        monitor=TerminalMonitor(),
    )
    if svg is not None:
        draw(svg, result.plot())
    if json:
        print_json(result)
    else:
        print_estimates(result)


def print_estimates(result: EstimateResult) -> None:
    """Print the tables of estimates."""
    from rejoinder.reporting import estimate_tables as tables

    estimates = result.estimates
    show(tables.systems_table(estimates))
    if estimates.pairs:
        show(tables.differences_table(estimates))
    say(f"by {' and '.join(estimates.metrics)}, {tables.about(estimates)}")
    say(tables.worth(estimates.ratings, estimates.effective_ratings))
