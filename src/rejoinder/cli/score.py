"""``rejoinder score``."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.monitor import TerminalMonitor
from rejoinder.cli.options import (
    AnyLanguageOption,
    ColumnsOption,
    EvaluatorOption,
    ItemsArgument,
    JsonOption,
    LanguageOption,
    MetricsOption,
    OutputOption,
    PluginOption,
    ResamplesOption,
    SeedOption,
    StrictOption,
    count_option,
    flag,
    load_plugins,
    parse_columns,
    stdout_problems,
)
from rejoinder.cli.terminal import print_json, say, show
from rejoinder.verbs.arguments import MAX_PROCESSES, RESAMPLES, SEED

if TYPE_CHECKING:
    from rejoinder.verbs.score import ScoreResult


def score(
    items: ItemsArgument,
    metric: MetricsOption,
    output: OutputOption = None,
    evaluator: EvaluatorOption = None,
    columns: ColumnsOption = None,
    strict: StrictOption = False,
    language: LanguageOption = None,
    any_language: AnyLanguageOption = False,
    parts: Annotated[bool, flag("--parts", "Also write the components of each score.")] = False,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-under",
            metavar="METRIC=X",
            help="Exit with code 5 if a system's corpus value is worse than X; repeatable.",
        ),
    ] = None,
    plugin: PluginOption = None,
    json: JsonOption = False,
    resamples: ResamplesOption = RESAMPLES,
    seed: SeedOption = SEED,
    processes: Annotated[
        int, count_option("--processes", "Processes that share the work.", max=MAX_PROCESSES)
    ] = 1,
    most_requests: Annotated[
        int | None,
        count_option("--most-requests", "Requests that each judge may send.", min=0),
    ] = None,
    most_tokens: Annotated[
        int | None,
        count_option("--most-tokens", "Tokens that each judge may spend.", min=0),
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option(
            "--costs", metavar="FILE", help="Also write what each metric took, for 'meta'."
        ),
    ] = None,
) -> None:
    """Score replies with one or more metrics.

    Scores go to FILE and a summary to stdout; without -o, scores go to stdout and the summary to
    stderr. A terminal shows only the summary, unless -o - asks for the scores. Metrics such as
    rejoinder need --evaluator (made by 'rejoinder fit'). A judge sends contexts, replies and
    references to the server that its spec names; nothing else leaves this machine.
    """
    from rejoinder.errors import UsageError
    from rejoinder.verbs.score import score as run

    load_plugins(plugin)
    limits = _limits(fail_under or [], metric)
    summary_only = output is None and sys.stdout.isatty()
    to_stdout = not summary_only and (output is None or str(output) == "-")
    problems = stdout_problems(json, output, "scores")
    if str(costs) == "-":
        problems.append("--costs - would mix two outputs: name a file")
    if problems:
        raise UsageError(*problems)
    result = run(
        items,
        metric,
        columns=parse_columns(columns),
        language=language,
        any_language=any_language,
        evaluator=evaluator,
        strict=strict,
        output=None if summary_only else "-" if to_stdout else output,
        parts=parts,
        keep=False,
        resamples=resamples,
        seed=seed,
        processes=processes,
        most_requests=most_requests,
        most_tokens=most_tokens,
        costs=costs,
        monitor=TerminalMonitor(),
    )
    if json:
        print_json(result)
    else:
        _print(result, stderr=to_stdout or summary_only)
        if summary_only:
            say("to get the score of each item, add -o FILE, or -o - to see them here")
    if limits:
        _say_unscored(result, limits)
        result.fail_under(limits)


def _say_unscored(result: ScoreResult, limits: dict[str, float]) -> None:
    """Warn if a gate is judged on a part of the replies."""
    from rejoinder.items import UNNAMED

    for row in result.summaries:
        label = result.metrics.labels[row.metric]
        total = row.scored + sum(row.unscored.values())
        if label in limits and 0 < row.scored < total:
            name = label if row.system == UNNAMED else f"{label} of {row.system}"
            say(
                f"warning: --fail-under {name}: judged on {row.scored:,} of {total:,} replies"
                f" ({row.scored / total:.0%}); the others are unscored"
            )


def _limits(options: list[str], metrics: list[str]) -> dict[str, float]:
    """Parse ``METRIC=VALUE``; the spec of the metric may contain '=', too."""
    from rejoinder.errors import UsageError
    from rejoinder.spec import did_you_mean, parse

    limits: dict[str, float] = {}
    problems = []
    known = [str(parse(metric)) for metric in metrics]
    for option in options:
        given, _, text = option.rpartition("=")
        try:
            name, limit = str(parse(given)), float(text)
        except (UsageError, ValueError):
            limit = math.nan
        if not math.isfinite(limit):
            problems.append(f"--fail-under {option}: expected METRIC=NUMBER")
        elif name not in known:
            problems.append(f"--fail-under {given}: {did_you_mean(given, metrics)} (of -m)")
        elif name in limits:
            problems.append(f"--fail-under {given}: given twice")
        else:
            limits[name] = limit
    if problems:
        raise UsageError(*problems)
    return limits


def _print(result: ScoreResult, *, stderr: bool) -> None:
    from rejoinder.reporting.tables import score_tables, set_scores_table

    labels = result.metrics.labels
    for table in score_tables(labels, result.summaries):
        show(table, stderr=stderr)
    if result.sets:
        show(set_scores_table(labels, result.sets), stderr=stderr)
    for (name, reason), count in result.unscored.items():
        say(f"{name}: {count:,} unscored: {reason}")
    for metric in labels:
        say(f"signature {metric.signature()}")
