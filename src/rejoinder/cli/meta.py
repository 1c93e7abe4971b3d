"""``rejoinder meta``."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

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
    SeedOption,
    StrictOption,
    SvgOption,
    count_option,
    decimal,
    flag,
    parse_columns,
    svg_problems,
)
from rejoinder.cli.terminal import draw, print_json, say, show
from rejoinder.verbs.arguments import MAX_DISTRACTOR, MIN_KAPPA, RESAMPLES, SEED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rejoinder.meta_evaluation.annotators import FilteredRatings
    from rejoinder.meta_evaluation.evaluation import MetricResult
    from rejoinder.verbs.meta import MetaResult
    from rejoinder.verbs.meta_references import MetaReferencesResult


NO_SCORES = "where are the scores? Give SCORES, a file that 'score' wrote"


class Level(StrEnum):
    """Choices of ``--level``."""

    item = "item"
    context = "context"
    system = "system"
    dialogue = "dialogue"


class Turns(StrEnum):
    """Choices of ``--turns``."""

    mean = "mean"
    min = "min"
    last = "last"
    learned = "learned"


class Statistic(StrEnum):
    """Choices of ``--statistic``."""

    spearman = "spearman"
    pearson = "pearson"
    kendall = "kendall"


def meta(
    items: ItemsArgument,
    scores: Annotated[
        str | None,
        typer.Argument(
            metavar="SCORES",
            help="JSONL, as 'score' writes it; with --references, items with weights.",
        ),
    ] = None,
    references: Annotated[
        bool,
        flag(
            "--references",
            "Correlate weights of references (in SCORES) with ratings of them (in ITEMS).",
        ),
    ] = False,
    attack: Annotated[
        bool,
        flag("--attack", "How far do replies that talk to a judge move its scores?"),
    ] = False,
    level: Annotated[
        Level, typer.Option("--level", metavar="NAME", help="item, context, system or dialogue.")
    ] = Level.item,
    turns: Annotated[
        Turns,
        typer.Option(
            "--turns",
            metavar="NAME",
            help="A dialogue's score from those of its turns: mean, min, last or learned.",
        ),
    ] = Turns.mean,
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
        count_option("--draws", "Random draws for each point of --curve.", min=2),
    ] = 20,
    set_ratings: Annotated[
        str | None,
        typer.Option(
            "--set-ratings",
            metavar="FILE",
            help="Ratings of sets of replies (context_id, system, ratings), for --level context.",
        ),
    ] = None,
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
    as_judges: Annotated[
        bool, flag("--as-judges", "Review all metrics as judges, also where there is no judge.")
    ] = False,
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon",
            metavar="E",
            parser=decimal(0, 0.99),
            help="How much worse a judge may be than an annotator; .1 by default.",
        ),
    ] = None,
    own_system: Annotated[
        list[str] | None,
        typer.Option(
            "--own-system",
            metavar="NAME",
            help="System that uses the judge's own model; repeatable.",
        ),
    ] = None,
    again: Annotated[
        str | None,
        typer.Option(
            "--again", metavar="SCORES", help="Scores of a second run, to measure repeatability."
        ),
    ] = None,
    costs: Annotated[
        str | None,
        typer.Option("--costs", metavar="FILE", help="Costs, as 'score --costs' writes them."),
    ] = None,
    answers: Annotated[
        list[str] | None,
        typer.Option(
            "--answers", metavar="FILE", help="Answers of 'pairs judge', for position bias."
        ),
    ] = None,
    json: JsonOption = False,
    resamples: ResamplesOption = RESAMPLES,
    seed: SeedOption = SEED,
) -> None:
    """Correlate scores with people's ratings: may this metric be trusted here?

    Intervals are bootstrapped over contexts, because replies to one context are not independent.
    With --evaluator, contexts of its training data are counted. Annotators who hardly agree with
    the others, or who rate planted distractors highly, are listed, and dropped with
    --drop-unreliable. Without ratings, --correct tells whether a metric prefers people's replies.
    With --references, the weights that an evaluator gave to references are compared with ratings of
    the same references: meta --references RATED EXPANDED. With --attack, replies that talk to the
    judge ('datasets export judge-attacks-en') are compared with the same replies that do not.
    """
    from rejoinder.errors import UsageError
    from rejoinder.files.paths import check_output
    from rejoinder.verbs.meta import meta as run

    problems = svg_problems(svg)
    if references or attack:
        other = "--references" if references else "--attack"
        unused = {
            "--attack": references and attack,
            "--level": level != Level.item,
            "--turns": turns != Turns.mean,
            "--statistic": statistic != Statistic.spearman,
            "--human-system": human_system != "human",
            "--correct": bool(correct),
            "--curve": curve,
            "--set-ratings": set_ratings is not None,
            "--svg": svg is not None,
            "--evaluator": evaluator is not None,
            "--strict": strict,
            "--any-language": any_language,
            "--as-judges": as_judges,
            "--epsilon": epsilon is not None,
            "--own-system": bool(own_system),
            "--again": again is not None,
            "--costs": costs is not None,
            "--answers": bool(answers),
        }
        if attack:
            unused |= {
                "--drop-annotator": bool(drop_annotator),
                "--drop-unreliable": drop_unreliable,
                "--min-kappa": min_kappa != MIN_KAPPA,
                "--max-distractor": max_distractor != MAX_DISTRACTOR,
                "--distractor": distractor != "distractor",
            }
        problems += [f"{name} has no use with {other}" for name, used in unused.items() if used]
    if attack and not references:
        _attack(
            items,
            scores,
            columns=parse_columns(columns),
            resamples=resamples,
            seed=seed,
            problems=problems,
            json=json,
        )
        return
    if references:
        _references(
            items,
            scores,
            drop_annotators=drop_annotator or (),
            drop_unreliable=drop_unreliable,
            min_kappa=min_kappa,
            max_distractor=max_distractor,
            distractor=distractor,
            columns=parse_columns(columns),
            resamples=resamples,
            seed=seed,
            problems=problems,
            json=json,
        )
        return
    if scores is None:
        raise UsageError(NO_SCORES)
    if svg is not None and not curve:
        problems.append("--svg draws the curve: add --curve")
    check_output(svg, [items, scores, set_ratings, evaluator, again, costs, *(answers or ())])
    result = run(
        items,
        scores=scores,
        level=level.value,
        turns=turns.value,
        statistic=statistic.value,
        human_system=human_system,
        correct=correct or (),
        curve=curve,
        draws=draws,
        set_ratings=set_ratings,
        drop_annotators=drop_annotator or (),
        drop_unreliable=drop_unreliable,
        min_kappa=min_kappa,
        max_distractor=max_distractor,
        distractor=distractor,
        columns=parse_columns(columns),
        evaluator=evaluator,
        strict=strict,
        any_language=any_language,
        as_judges=as_judges,
        epsilon=epsilon,
        own_systems=own_system or (),
        again=again,
        costs=costs,
        answers=answers or (),
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
    from rejoinder.reporting.judge_tables import judge_notes, judge_tables

    show(tables.correlation_table(result, result.correct))
    for table in (
        tables.without_human_table(result, human_system),
        tables.annotator_table(result),
        tables.accuracy_table(result),
        tables.auc_table(result),
        tables.difference_table(result),
        *tables.coverage_tables(result, result.correct),
        *judge_tables(result.judges),
        *(tables.curve_table(name, points) for name, points in result.curves.items()),
    ):
        if table is not None:
            show(table)
    for each in result.results:
        if reason := each.undefined:
            say(f"{each.metric}: no correlation: {reason}")
    if result.humans is not None:
        say(tables.annotator_facts(result.humans))
    _print_annotators(
        result.annotators, result.before, result.results, drop_unreliable=drop_unreliable
    )
    for name, reason in result.refused.items():
        say(f"{name}: left out: {reason}")
    for note in judge_notes(result.judges):
        say(note)
    if result.unrated:
        say(f"{result.unrated:,} of {result.rated + result.unrated:,} have no rating")


def _attack(
    items: str, scores: str | None, *, problems: Sequence[str], json: bool, **options: Any
) -> None:
    """Run and print ``meta --attack``."""
    from rejoinder.errors import UsageError
    from rejoinder.reporting.attack_tables import attack_notes, attack_tables
    from rejoinder.verbs.meta_attack import meta_attack

    if scores is None:
        raise UsageError(*problems, NO_SCORES)
    result = meta_attack(items, scores, problems=problems, monitor=TerminalMonitor(), **options)
    if json:
        print_json(result)
        return
    for table in attack_tables(result.reviews):
        show(table)
    for note in attack_notes(result.reviews):
        say(note)


def _references(
    rated: str, weighted: str | None, *, drop_unreliable: bool, json: bool, **options: Any
) -> None:
    """Run and print ``meta --references``."""
    from rejoinder.verbs.meta_references import meta_references

    result = meta_references(
        rated, weighted, drop_unreliable=drop_unreliable, monitor=TerminalMonitor(), **options
    )
    if json:
        print_json(result)
    else:
        _print_references(result, drop_unreliable=drop_unreliable)


def _print_references(result: MetaReferencesResult, *, drop_unreliable: bool) -> None:
    from rejoinder.reporting.meta_tables import annotator_facts
    from rejoinder.reporting.reference_tables import reference_table

    show(reference_table(result.result, result.humans))
    n = result.result.correlations.n
    say(f"{n:,} references of {result.contexts:,} contexts have a weight and a rating")
    if reason := result.result.undefined:
        say(f"no correlation: {reason}")
    if result.humans is not None:
        say(annotator_facts(result.humans))
    before = None if result.before is None else [result.before]
    _print_annotators(result.annotators, before, [result.result], drop_unreliable=drop_unreliable)
    for count, what in (
        (result.unmatched, "rated references are not among the references with weights"),
        (result.unweighted, "rated references have no weight"),
        (result.unrated, "references with a weight have no rating"),
    ):
        if count:
            say(f"{count:,} {what}")


def _print_annotators(
    filtered: FilteredRatings | None,
    before: Sequence[MetricResult] | None,
    results: Sequence[MetricResult],
    *,
    drop_unreliable: bool,
) -> None:
    """Print the unreliable annotators, and what it changed to drop them."""
    from rejoinder.meta_evaluation.join import abbreviated
    from rejoinder.reporting.annotator_tables import (
        agreement_line,
        annotators_table,
        before_after_table,
    )

    if filtered is None:
        return
    if filtered.unreliable or filtered.dropped:
        show(annotators_table(filtered.before.agreement, filtered.unreliable, "rating"))
    if before is not None and filtered.after is not None:
        show(before_after_table(before, results))
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
