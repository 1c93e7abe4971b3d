"""``rejoinder report``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rejoinder.cli.monitor import TerminalMonitor
from rejoinder.cli.options import (
    ColumnsOption,
    EvaluatorOption,
    ItemsArgument,
    LanguageOption,
    OutputOption,
    ResamplesOption,
    ScoresArgument,
    SeedOption,
    count_option,
    parse_columns,
)
from rejoinder.cli.terminal import say
from rejoinder.verbs.arguments import MAX_REPORT_ITEMS, RESAMPLES, SEED


def report(
    items: ItemsArgument,
    scores: ScoresArgument,
    output: OutputOption = None,
    evaluator: EvaluatorOption = None,
    columns: ColumnsOption = None,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="The heading of the page.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            "-m",
            metavar="SPEC",
            help="Ranks the systems; by default 'rejoinder', or the last metric.",
        ),
    ] = None,
    max_items: Annotated[
        int,
        count_option("--items", "Maximum number of items to browse."),
    ] = MAX_REPORT_ITEMS,
    curve: Annotated[
        str | None,
        typer.Option("--curve", metavar="FILE", help="Output of 'meta --curve --json'."),
    ] = None,
    language: LanguageOption = None,
    resamples: ResamplesOption = RESAMPLES,
    seed: SeedOption = SEED,
) -> None:
    """Write one HTML page: which system is better, how sure that is, and why.

    It opens offline, and has the ranking, agreement with people (where items have ratings), plots,
    and a table of items to browse.
    """
    from rejoinder.errors import UsageError
    from rejoinder.files.output import open_output
    from rejoinder.verbs.report import report as run

    if output is None and sys.stdout.isatty():
        raise UsageError("the page would fill the terminal: add -o report.html")
    result = run(
        items,
        scores,
        output=output,
        evaluator=evaluator,
        columns=parse_columns(columns),
        title=title,
        metric=metric,
        max_items=max_items,
        curve=curve,
        language=language,
        resamples=resamples,
        seed=seed,
        monitor=TerminalMonitor(),
    )
    if output is None:
        with open_output(None) as stream:
            stream.write(result.html)
    where = "stdout" if output is None or str(output) == "-" else output
    say(f"report in {where} ({len(result.html) / 1e6:.2f} MB)")
