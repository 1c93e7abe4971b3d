"""``rejoinder meta``."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.monitor import TerminalMonitor
from rejoinder.cli.options import (
    AnyLanguageOption,
    ColumnsOption,
    DistractorOption,
    DropAnnotatorOption,
    DropUnreliableOption,
    EvaluatorOption,
    ItemsArgument,
    JsonOption,
    MaxDistractorOption,
    MinKappaOption,
    ResamplesOption,
    ScoresArgument,
    SeedOption,
    StrictOption,
    SvgOption,
    flag,
    svg_problems,
)
from rejoinder.cli.terminal import draw, print_json, say, show
from rejoinder.verbs.arguments import MAX_DISTRACTOR, MIN_KAPPA, RESAMPLES, SEED

if TYPE_CHECKING:
    from rejoinder.verbs.meta import MetaResult


class Level(StrEnum):
    """Choices of ``--level``."""

    item = "item"
    context = "context"
    system = "system"


class Statistic(StrEnum):
    """Choices of ``--statistic``."""

    spearman = "spearman"
    pearson = "pearson"
    kendall = "kendall"


def meta(
    items: ItemsArgument,
    scores: ScoresArgument,
    level: Annotated[
        Level, typer.Option("--level", metavar="NAME", help="item, context or system.")
    ] = Level.item,
    statistic: Annotated[
        Statistic,
        typer.Option(
            "--statistic",
            metavar="NAME",
            help="Correlation used to compare metrics: spearman, pearson or kendall.",
        ),
    ] = Statistic.spearman,
    human_system: Annotated[
        str,
        typer.Option(
            "--human-system",
            metavar="NAME",
            help="Name of the system whose replies were written by people.",
        ),
    ] = "human",
    correct: Annotated[
        list[str] | None,
        typer.Option(
            "--correct",
            metavar="NAME",
            help="Without ratings: replies of this system are correct, others not; repeatable.",
        ),
    ] = None,
    curve: Annotated[
        bool, flag("--curve", "Also show the correlation by the number of references.")
    ] = False,
    draws: Annotated[
        int,
        typer.Option("--draws", min=2, metavar="N", help="Random draws for each point of --curve."),
    ] = 20,
    svg: SvgOption = None,
    drop_annotator: DropAnnotatorOption = None,
    drop_unreliable: DropUnreliableOption = False,
    min_kappa: MinKappaOption = MIN_KAPPA,
    max_distractor: MaxDistractorOption = MAX_DISTRACTOR,
    distractor: DistractorOption = "distractor",
    evaluator: EvaluatorOption = None,
    columns: ColumnsOption = None,
    strict: StrictOption = False,
    any_language: AnyLanguageOption = False,
    json: JsonOption = False,
    resamples: ResamplesOption = RESAMPLES,
    seed: SeedOption = SEED,
) -> None:
    """Correlate scores with people's ratings: may this metric be trusted here?

    Intervals are bootstrapped over contexts, because replies to one context are not independent.
    With --evaluator, contexts of its training data are counted. Annotators who hardly agree with
    the others, or who rate planted distractors highly, are listed, and dropped with
    --drop-unreliable. Without ratings, --correct tells whether a metric prefers people's replies.
    """
    from rejoinder.files.paths import check_output
    from rejoinder.verbs.meta import meta as run
    from rejoinder.verbs.source import parse_columns

    problems = svg_problems(svg)
    if svg is not None and not curve:
        problems.append("--svg draws the curve: add --curve")
    check_output(svg, [items, scores, evaluator])
    result = run(
        items,
        scores=scores,
        level=level.value,
        statistic=statistic.value,
        human_system=human_system,
        correct=correct or (),
        curve=curve,
        draws=draws,
        drop_annotators=drop_annotator or (),
        drop_unreliable=drop_unreliable,
        min_kappa=min_kappa,
        max_distractor=max_distractor,
        distractor=distractor,
        columns=parse_columns(columns),
        evaluator=evaluator,
        strict=strict,
        any_language=any_language,
        resamples=resamples,
        seed=seed,
        problems=problems,
        monitor=TerminalMonitor(),
    )
    if svg is not None:
        draw(svg, result.plot())
    if json:
        print_json(result)
    else:
        _print(result, human_system, drop_unreliable=drop_unreliable)


def _print(result: MetaResult, human_system: str, *, drop_unreliable: bool) -> None:
    from rejoinder.reporting import meta_tables as tables

    show(tables.correlation_table(result, result.correct))
    for table in (
        tables.without_human_table(result, human_system),
        tables.annotator_table(result),
        tables.accuracy_table(result),
        tables.auc_table(result),
        tables.difference_table(result),
        *tables.coverage_tables(result, result.correct),
        *(tables.curve_table(name, points) for name, points in result.curves.items()),
    ):
        if table is not None:
            show(table)
    for each in result.results:
        if reason := each.undefined:
            say(f"{each.metric}: no correlation: {reason}")
    if result.humans is not None:
        say(tables.annotator_facts(result.humans))
    _print_annotators(result, drop_unreliable=drop_unreliable)
    for name, reason in result.refused.items():
        say(f"{name}: left out: {reason}")
    if result.unrated:
        say(f"{result.unrated:,} of {result.rated + result.unrated:,} have no rating")


def _print_annotators(result: MetaResult, *, drop_unreliable: bool) -> None:
    """Print the unreliable annotators, and what it changed to drop them."""
    from rejoinder.meta_evaluation.join import abbreviated
    from rejoinder.reporting.annotator_tables import (
        agreement_line,
        annotators_table,
        before_after_table,
    )

    filtered = result.annotators
    if filtered is None:
        return
    if filtered.unreliable or filtered.dropped:
        show(annotators_table(filtered.before.agreement, filtered.unreliable, "rating"))
    if result.before is not None and filtered.after is not None:
        show(before_after_table(result.before, result.results))
        say(f"dropped: {abbreviated(filtered.dropped)}")
        for when, review in (("before", filtered.before), ("after", filtered.after)):
            say(f"{when}: {agreement_line(review.agreement, review.ratings, 'rating')}")
    elif filtered.unreliable:
        count = len(filtered.unreliable)
        are = "1 annotator is" if count == 1 else f"{count:,} annotators are"
        say(f"{are} unreliable: --drop-unreliable leaves their ratings out")
    if drop_unreliable and not filtered.before.names:
        say("no rating names its annotator, so none can be dropped")
    elif drop_unreliable and not filtered.unreliable:
        say("no annotator is unreliable: --drop-unreliable drops none")
