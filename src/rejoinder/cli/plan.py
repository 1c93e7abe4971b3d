"""``rejoinder plan``."""

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
    SvgOption,
    count_option,
    decimal,
    output_file,
    parse_columns,
    seed_option,
    svg_problems,
)
from rejoinder.cli.terminal import draw, print_json, say, show
from rejoinder.verbs.arguments import SEED

if TYPE_CHECKING:
    from rejoinder.verbs.plan import PlanResult


class Question(StrEnum):
    """Choices of ``--for``."""

    mean = "mean"
    difference = "difference"
    ranking = "ranking"


class Target(StrEnum):
    """Choices of ``--target``."""

    contexts = "contexts"
    replies = "replies"


def _number(name: str, help: str, low: float, high: float) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        name, metavar="X", parser=decimal(low, high), help=help
    )
    return option


def plan(
    items: ItemsArgument,
    scores: Annotated[
        str | None, typer.Argument(metavar="[SCORES]", help="JSONL, as 'score' writes it.")
    ] = None,
    budget: Annotated[
        int | None, count_option("--budget", "Ratings to ask for.", short="-n")
    ] = None,
    output: Annotated[Path | None, output_file("File for the replies to rate next.")] = None,
    all_items: Annotated[
        Path | None,
        typer.Option(
            "--all",
            metavar="FILE",
            help="File for all items, the rated ones with their new probabilities.",
        ),
    ] = None,
    question: Annotated[
        Question | None,
        typer.Option(
            "--for",
            metavar="NAME",
            help="mean, difference or ranking; by default by the number of systems.",
        ),
    ] = None,
    system: Annotated[
        list[str] | None,
        typer.Option(
            "--system", metavar="NAME", help="A system to plan for; repeatable; by default all."
        ),
    ] = None,
    metric: OptionalMetricsOption = None,
    width: Annotated[
        float | None, _number("--width", "Wanted width of the interval.", 1e-9, 1e9)
    ] = None,
    power: Annotated[
        float | None,
        _number("--power", "Wanted probability that --difference is significant.", 0.01, 0.999),
    ] = None,
    difference: Annotated[
        float | None,
        _number("--difference", "The smallest true difference that matters.", 1e-9, 1e9),
    ] = None,
    sd: Annotated[
        float | None, _number("--sd", "Standard deviation of the ratings of replies.", 1e-9, 1e9)
    ] = None,
    correlation: Annotated[
        float | None, _number("--correlation", "Correlation of the scores with ratings.", 0, 0.999)
    ] = None,
    ratings: Annotated[
        int,
        count_option("--ratings-per-reply", "Replies with fewer are asked again.", max=1000),
    ] = 1,
    uneven: Annotated[
        float,
        _number(
            "--uneven", "0: equal probabilities; up to .9: more where scores differ more.", 0, 0.9
        ),
    ] = 0.0,
    target: Annotated[
        Target,
        typer.Option(
            "--target",
            metavar="NAME",
            help="What the answer is about: contexts (like these), or replies (just these).",
        ),
    ] = Target.contexts,
    confidence: Annotated[
        float, _number("--confidence", "Confidence level of the intervals.", 0.5, 0.999)
    ] = 0.95,
    svg: SvgOption = None,
    columns: ColumnsOption = None,
    json: JsonOption = False,
    seed: Annotated[int, seed_option()] = SEED,
) -> None:
    """Choose the replies that people should rate next, and say how many it takes.

    The replies are a random choice with known probabilities, so that 'estimate' stays unbiased. For
    a difference or a ranking whole contexts are chosen. A larger budget with the same seed adds
    replies; rated ones are not asked again. Without --budget, as many are chosen as --width or
    --power need.
    """
    from rejoinder.verbs.plan import plan as run

    problems = svg_problems(svg)
    if json and "-" in (str(output), str(all_items)):
        problems.append("--json prints to stdout, where the replies go: name a file")
    if str(output) == str(all_items) == "-":
        problems.append("-o - and --all - would mix both on stdout: name a file")
    result = run(
        items,
        scores,
        budget=budget,
        output=output,
        all_items=all_items,
        question=None if question is None else question.value,
        systems=system or (),
        metrics=metric or (),
        width=width,
        power=power,
        difference=difference,
        sd=sd,
        correlation=correlation,
        ratings_per_reply=ratings,
        uneven=uneven,
        target=target.value,
        confidence=confidence,
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
        _print(result)


def _print(result: PlanResult) -> None:
    from rejoinder.reporting import plan_tables as tables

    if result.output != "-":
        if result.looks:
            show(tables.looks_table(result.looks))
        show(tables.curve_table(result.curve))
    say(tables.spread_line(result.spread, result.question))
    if result.needed_for_width is not None:
        say(tables.needed_line(result.needed_for_width, f"for a width of {result.width:g}"))
    if result.needed_for_power is not None:
        aim = f"to see a difference of {result.difference:g} with a power of {result.power:g}"
        say(tables.needed_line(result.needed_for_power, aim))
    if result.looks:
        say(
            "decided: you may stop"
            if result.decided
            else "not decided yet: more ratings are needed"
        )
    say(
        f"{result.output or 'next'}: {len(result.items):,} replies, {result.ratings:,} ratings, for"
        f" the {result.question} of {', '.join(result.systems)}; {result.planned.asked:,} of"
        f" {result.planned.units:,} {'replies' if result.question == 'mean' else 'contexts'}"
        " will then have ratings"
    )
