"""``rejoinder meta``: may this metric be trusted here?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder.cli.annotators import (
    DISTRACTOR,
    LEAST_KAPPA,
    MOST_DISTRACTOR,
    DistractorOption,
    DropAnnotatorOption,
    DropBadOption,
    LeastKappaOption,
    MostDistractorOption,
    check_distractor,
    check_names,
    wrong_limits,
)
from rejoinder.cli.common import (
    JsonOption,
    ResamplesOption,
    SeedOption,
    SvgOption,
    check_output,
    draw,
    drawn_to_stdout,
    naming,
    print_json,
    say,
    show,
)
from rejoinder.cli.evaluator import (
    EvaluatorOption,
    StrictOption,
    check_strict,
    guard,
    plain_seen,
)

if TYPE_CHECKING:
    from rejoinder.evaluator.seen import Guarded
    from rejoinder.items import Item
    from rejoinder.meta_evaluation.correlate import Correlations
    from rejoinder.meta_evaluation.coverage import Third
    from rejoinder.meta_evaluation.curves import Point
    from rejoinder.meta_evaluation.raters import Raters, Sifted
    from rejoinder.meta_evaluation.study import Result, Study


class Level(StrEnum):
    item = "item"
    context = "context"
    system = "system"


class Statistic(StrEnum):
    spearman = "spearman"
    pearson = "pearson"
    kendall = "kendall"


def meta(
    items: Annotated[str, typer.Argument(metavar="ITEMS", help="Items with ratings, JSONL.")],
    scores: Annotated[str, typer.Argument(metavar="SCORES", help="What 'score' wrote for them.")],
    level: Annotated[Level, typer.Option("--level", help="What is correlated.")] = Level.item,
    statistic: Annotated[
        Statistic, typer.Option("--statistic", help="For 'is metric A better than B'.")
    ] = Statistic.spearman,
    human_system: Annotated[
        str, typer.Option("--human-system", metavar="NAME", help="The system that is people.")
    ] = "human",
    right: Annotated[
        list[str] | None,
        typer.Option(
            "--right",
            metavar="NAME",
            help="No ratings: replies of this system are right, others wrong; repeat.",
        ),
    ] = None,
    curve: Annotated[
        bool, typer.Option("--curve", help="Correlation over the number of references too.")
    ] = False,
    draws: Annotated[
        int, typer.Option("--draws", min=2, metavar="N", help="Random draws a point of --curve.")
    ] = 20,
    svg: SvgOption = None,
    drop_annotator: DropAnnotatorOption = None,
    drop_bad: DropBadOption = False,
    least_kappa: LeastKappaOption = LEAST_KAPPA,
    most_distractor: MostDistractorOption = MOST_DISTRACTOR,
    distractor: DistractorOption = DISTRACTOR,
    evaluator: EvaluatorOption = None,
    strict: StrictOption = False,
    json: JsonOption = False,
    resamples: ResamplesOption = 1000,
    seed: SeedOption = 12345,
) -> None:
    """Correlate scores with what people said.

    Intervals are bootstrapped over contexts, because replies to one context are not independent.
    With --evaluator, contexts that were seen while it was made are counted. Annotators who hardly
    agree with the others, or who rate a planted distractor high, are listed, and left out with
    --drop-bad. Without ratings, --right tells whether a metric knows people's replies from others.
    """
    from rejoinder.errors import UsageError
    from rejoinder.io import read_items, read_scores
    from rejoinder.meta_evaluation.annotators import Limits
    from rejoinder.meta_evaluation.authors import rated_by_author
    from rejoinder.meta_evaluation.humans import rating_table
    from rejoinder.meta_evaluation.join import join
    from rejoinder.meta_evaluation.raters import Sifted
    from rejoinder.meta_evaluation.study import Settings, results, study

    problems = wrong_limits(least_kappa, most_distractor)
    if curve and level is not Level.item:
        problems.append("--curve draws references for single replies: use it with --level item")
    if svg is not None and not curve:
        problems.append("--svg draws what --curve finds: add --curve")
    problems += drawn_to_stdout(svg)
    if right and (drop_bad or drop_annotator):
        problems.append("--right reads no ratings: there is no annotator to be left out")
    if problems:
        raise UsageError(*problems)
    check_output(svg, [items, scores, evaluator])
    check_strict(strict, evaluator is not None)
    replies = list(read_items(items))
    if right:
        replies = rated_by_author(replies, right)
    joined = join(replies, read_scores(scores), items_name=items, scores_name=scores)
    # without the right ones, all would be wrong alike
    settings = Settings(resamples, seed, statistic.value, None if right else human_system)
    names = drop_annotator or []
    check_distractor(distractor, (reply.system for reply in replies))
    check_names(names, rating_table(replies)[0] if names else [])
    with naming(items):
        seen = _guarded(replies, evaluator, strict=strict)
        limits = Limits(least_kappa, most_distractor)
        people = Sifted.of(replies, limits, names, drop_bad=drop_bad, distractor=distractor)
        before = None
        if people.dropped:
            before = results(joined, level.value, settings)
            replies = people.items
            joined = replace(joined, items=replies)
        found = study(joined, level.value, settings)
        curves = _curves(replies, found, draws, seed, evaluator) if curve else {}
    if svg is not None:
        from rejoinder.reporting.agreement import curve_chart

        draw(svg, curve_chart(curves, statistic.value))
    if json:
        judged = {"annotators": _plain_people(people, before)}
        print_json(as_json(found, curves) | judged | ({"seen": plain_seen(seen)} if seen else {}))
        return
    from rejoinder.reporting import agreement as tables

    show(tables.correlation_table(found, right or ()))
    for table in (
        tables.without_human_table(found, human_system),
        tables.annotator_table(found),
        tables.accuracy_table(found),
        tables.auc_table(found),
        tables.difference_table(found),
        *tables.coverage_tables(found, right or ()),
        *(tables.curve_table(name, points) for name, points in curves.items()),
    ):
        if table is not None:
            show(table)
    for result in found.results:
        if reason := result.undefined:
            say(f"{result.metric}: no correlation: {reason}")
    if found.humans is not None:
        say(tables.annotator_facts(found.humans))
    _print_people(people, before, found.results)
    if drop_bad and not people.before.names:
        say("annotators are unknown: no rating names who gave it, so none can be left out")
    elif drop_bad and not people.bad:
        say("no annotator is bad: --drop-bad leaves nobody out")
    for name, reason in found.refused.items():
        say(f"{name}: left out: {reason}")
    if found.unrated:
        say(f"{found.unrated:,} of {found.rated + found.unrated:,} have no rating")


def _print_people(people: Sifted, before: Sequence[Result] | None, after: Sequence[Result]) -> None:
    """Those who rate badly, and what it changed to leave them out."""
    from rejoinder.meta_evaluation.join import listed
    from rejoinder.reporting.annotators import agreement_line, annotators_table, before_after_table

    if people.bad or people.dropped:
        show(annotators_table(people.before.agreement, people.bad, "rating"))
    if before is None or people.after is None:
        if people.bad:
            count = len(people.bad)
            told = "1 annotator is bad" if count == 1 else f"{count:,} annotators are bad"
            say(f"{told}: --drop-bad leaves out who is")
        return
    show(before_after_table(before, after))
    say(f"left out: {listed(people.dropped)}")
    for when, who in (("before", people.before), ("after", people.after)):
        say(f"{when}: {agreement_line(who.agreement, who.ratings, 'rating')}")


def _plain_people(people: Sifted, before: Sequence[Result] | None) -> dict[str, Any] | None:
    """None where ratings name nobody."""
    if not people.before.names:
        return None

    def plain(who: Raters) -> dict[str, Any]:
        each = [asdict(one) for one in who.agreement.annotators]
        named = [{"name": one["name"], "ratings": one.pop("answers")} | one for one in each]
        return {"ratings": who.ratings, **asdict(who.agreement), "annotators": named}

    earlier = {} if before is None else {"results": [_result(result) for result in before]}
    return {
        "before": plain(people.before) | earlier,
        "bad": people.bad,
        "dropped": people.dropped,
        "after": None if people.after is None else plain(people.after),
    }


def _guarded(replies: list[Item], folder: str | None, *, strict: bool) -> dict[str, Guarded]:
    if folder is None:
        return {}
    from rejoinder.evaluator import open_evaluator

    return guard(replies, [open_evaluator(folder)], strict=strict)[1]


def _curves(
    replies: list[Item], found: Study, draws: int, seed: int, evaluator: str | None
) -> dict[str, list[Point]]:
    from rejoinder.meta_evaluation.curves import reference_curve
    from rejoinder.metrics.request import requests

    asked = requests((result.metric for result in found.results), evaluator=evaluator)
    points = reference_curve(replies, asked.item_metrics, draws=draws, seed=seed)
    return {request.label: row for request, row in zip(asked.items, points, strict=True)}


def as_json(found: Study, curves: dict[str, list[Point]]) -> dict[str, Any]:
    return {
        "level": found.level,
        "rated": found.rated,
        "unrated": found.unrated,
        "results": [_result(result) for result in found.results],
        "refused": found.refused,
        "differences": found.differences,
        "humans": found.humans,
        "curves": curves,
        "by_coverage": [_third(third) for third in found.by_coverage],
    }


def _result(result: Result) -> dict[str, Any]:
    """The contract: statistics side by side in one flat object."""
    extra = {
        "without_human": _flat(result.without_human) if result.without_human else None,
        "annotators": result.annotators,
        "pairwise_accuracy": result.accuracy,
        "auc": result.auc,
        "recall_at_1": result.recall_at_1,
    }
    return {
        "metric": result.metric,
        "level": result.level,
        "n": result.correlations.n,
        "unscored": result.unscored,
        **_flat(result.correlations, count=False),
        **{key: value for key, value in extra.items() if value is not None},
    }


def _third(third: Third) -> dict[str, Any]:
    return {
        "metric": third.metric,
        "by": third.by,
        "third": third.third,
        "from": third.low,
        "to": third.high,
        **_flat(third.correlations),
    }


def _flat(correlations: Correlations, *, count: bool = True) -> dict[str, Any]:
    flat: dict[str, Any] = {"n": correlations.n} if count else {}
    for name in ("spearman", "pearson", "kendall"):
        estimate = getattr(correlations, name)
        known = estimate.low is not None
        flat[name] = estimate.value
        flat[f"{name}_p"] = estimate.p
        flat[f"{name}_ci"] = [estimate.low, estimate.high] if known else None
    return flat
