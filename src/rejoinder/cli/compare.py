"""``rejoinder compare``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rejoinder.cli.monitor import TerminalMonitor
from rejoinder.cli.options import (
    AnyLanguageOption,
    ColumnsOption,
    EvaluatorOption,
    ItemsArgument,
    JsonOption,
    LanguageOption,
    OptionalMetricsOption,
    PluginOption,
    ResamplesOption,
    SeedOption,
    StrictOption,
    SvgOption,
    count_option,
    flag,
    load_plugins,
    parse_columns,
    svg_problems,
)
from rejoinder.cli.terminal import draw, print_json, say, show
from rejoinder.verbs.arguments import DRAWS, RANKING_RESAMPLES, SEED

if TYPE_CHECKING:
    from rejoinder.verbs.compare import CompareResult


def compare(
    items: ItemsArgument,
    scores: Annotated[
        str | None,
        typer.Argument(metavar="SCORES", help="JSONL, as 'score' writes it; instead of -m."),
    ] = None,
    metric: OptionalMetricsOption = None,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="people", help="Rank by the items' ratings."),
    ] = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-if",
            metavar="worse-than=NAME",
            help="Exit with code 5 if a system is significantly worse than this one.",
        ),
    ] = None,
    margin: Annotated[
        float,
        typer.Option("--margin", metavar="X", help="With --fail-if: accept differences up to X."),
    ] = 0.0,
    curve: Annotated[
        bool, flag("--curve", "Also show the systems' values by the number of references.")
    ] = False,
    draws: Annotated[
        int, count_option("--draws", "Random draws for each point of --curve.", min=1)
    ] = DRAWS,
    keep_first: Annotated[
        bool,
        flag("--keep-first", "With --curve: the first reference is in each draw."),
    ] = False,
    svg: SvgOption = None,
    evaluator: EvaluatorOption = None,
    columns: ColumnsOption = None,
    strict: StrictOption = False,
    language: LanguageOption = None,
    any_language: AnyLanguageOption = False,
    plugin: PluginOption = None,
    json: JsonOption = False,
    resamples: ResamplesOption = RANKING_RESAMPLES,
    seed: SeedOption = SEED,
) -> None:
    """Rank systems, with confidence intervals and groups that can't be told apart.

    They are ranked by metrics (-m), by the metrics of a SCORES file, or by people's ratings (--by
    people), on the contexts that all of them answered; two systems are tested on the contexts that
    both answered. Intervals by paired bootstrap over contexts, p-values by paired bootstrap and by
    approximate randomisation.
    """
    from rejoinder.errors import UsageError
    from rejoinder.files.paths import check_output
    from rejoinder.verbs.compare import compare as run

    load_plugins(plugin)
    baseline = None
    if fail_if:
        if len(fail_if) > 1:
            raise UsageError("--fail-if is given twice; compare with one baseline at a time")
        condition, _, baseline = fail_if[0].partition("=")
        if condition != "worse-than" or not baseline:
            raise UsageError(f"--fail-if {fail_if[0]}: expected worse-than=SYSTEM")
    if margin < 0 or margin != margin:
        raise UsageError(f"--margin must be 0 or more, got {margin:g}")
    if margin and baseline is None:
        raise UsageError("--margin belongs to --fail-if worse-than=SYSTEM")
    if by not in (None, "people"):
        raise UsageError(f"--by {by}: expected people")
    if metric is None and scores is None and by is None:
        raise UsageError("compare by what? Add -m METRIC, a SCORES file, or --by people")
    if by is not None and (metric or scores is not None):
        raise UsageError("--by people ranks by the items' ratings: leave out -m and SCORES")
    if curve and not metric:
        raise UsageError("--curve draws references and scores again: add -m METRIC")
    problems = svg_problems(svg)
    if svg is not None and not curve:
        problems.append("--svg draws the curve: add --curve")
    if keep_first and not curve:
        problems.append("--keep-first belongs to --curve")
    if problems:
        raise UsageError(*problems)
    check_output(svg, [items, scores, evaluator])
    people: Literal["people"] | None = None if by is None else "people"
    result = run(
        items,
        metric or (),
        scores=scores,
        by=people,
        baseline=baseline,
        margin=margin,
        columns=parse_columns(columns),
        language=language,
        any_language=any_language,
        evaluator=evaluator,
        strict=strict,
        curve=curve,
        draws=draws,
        keep_first=keep_first,
        resamples=resamples,
        seed=seed,
        monitor=TerminalMonitor(),
    )
    if svg is not None:
        draw(svg, result.plot())
    if json:
        print_json(result)
    else:
        _print(result)
    if baseline is not None:
        result.fail_if_worse()
        by_more = f" by more than {margin:g}" if margin else ""
        say(f"gate passed: no system is significantly worse than {baseline}{by_more}")


def _print(result: CompareResult) -> None:
    from rejoinder.meta_evaluation.ranking import NOT_ADDITIVE
    from rejoinder.reporting.system_curve import system_table
    from rejoinder.reporting.tables import pairs_table, ranking_notes, ranking_table

    for ranking in result:
        show(ranking_table(ranking.by, ranking))
        show(pairs_table(ranking))
        for note in ranking_notes(ranking):
            say(f"{ranking.by}: {note}")
    for name, points in result.curves.items():
        show(system_table(name, points))
    for name, reason in result.refused.items():
        if result.baseline is None or reason == NOT_ADDITIVE:  # the gate reports the others
            say(f"{name}: not compared: {reason}")
    for ranking in result:
        if ranking.signature:
            say(f"signature {ranking.signature}")
