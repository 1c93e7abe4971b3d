"""``rejoinder compare``: which bot is better, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder.cli.common import (
    JsonOption,
    LanguageOption,
    MetricsOption,
    ResamplesOption,
    SeedOption,
    naming,
    print_json,
    say,
    show,
)
from rejoinder.cli.evaluator import (
    EvaluatorOption,
    StrictOption,
    evaluators_of,
    guard,
    read_twice,
    say_coverage,
    watched,
)
from rejoinder.cli.progress import progress

if TYPE_CHECKING:
    from rejoinder.meta_evaluation.ranking import Ranking
    from rejoinder.metrics.base import Metric
    from rejoinder.metrics.request import Requests


def compare(
    items: Annotated[
        str, typer.Argument(metavar="ITEMS", help="Replies of two or more systems, JSONL.")
    ],
    metric: MetricsOption,
    evaluator: EvaluatorOption = None,
    strict: StrictOption = False,
    language: LanguageOption = None,
    json: JsonOption = False,
    resamples: ResamplesOption = 1000,
    seed: SeedOption = 12345,
) -> None:
    """Rank systems, with confidence intervals and groups that can't be told apart.

    Systems are compared on the contexts that all of them answered: intervals by paired
    bootstrap over contexts, p-values by paired bootstrap and by approximate randomisation.
    """
    from rejoinder.io import JsonLines, read_items
    from rejoinder.items import Item
    from rejoinder.meta_evaluation.ranking import compare_systems
    from rejoinder.metrics.evaluate import Scored, evaluate
    from rejoinder.metrics.request import notes, requests

    asked = requests(metric, language, evaluator)
    evaluators = evaluators_of(asked, evaluator, strict=strict)
    tallies: dict[str, Any] = {}
    source = JsonLines(items)

    def scored() -> Iterator[tuple[list[Item], list[Scored]]]:
        examined, _ = guard(read_items(source), evaluators, strict=strict)
        with progress("scoring", lambda: source.fraction) as advance:
            done = 0
            found = evaluate(
                read_items(source), asked.item_metrics, strict=False, examined=examined
            )
            for batch, results in watched(found, tallies):
                yield batch, results
                done += len(batch)
                advance(done)

    with read_twice(source) if evaluators else nullcontext(), naming(source.name):
        rankings, refused = compare_systems(asked, scored(), resamples=resamples, seed=seed)
    for note in notes(asked):
        say(note)
    for name, tally in tallies.items():
        say_coverage(name, tally.covered())
    if json:
        print_json(as_json(asked, rankings, refused))
        return
    from rejoinder.reporting.tables import pairs_table, ranking_table

    for ranking in rankings:
        show(ranking_table(asked.labels[ranking.metric], ranking))
        show(pairs_table(ranking))
        if ranking.left_out:
            say(
                f"{asked.labels[ranking.metric]}: {ranking.left_out:,} contexts left out, because"
                " not every system has a score there"
            )
    for each, reason in refused.items():
        say(f"{asked.labels[each]}: not compared: {reason}")
    for request in [*asked.items, *asked.sets]:
        say(f"signature {request.metric.signature()}")


def as_json(asked: Requests, rankings: list[Ranking], refused: dict[Metric, str]) -> dict[str, Any]:
    return {
        "results": [
            {
                "metric": asked.labels[ranking.metric],
                "signature": ranking.metric.signature(),
                "contexts": ranking.contexts,
                "left_out": ranking.left_out,
                "systems": ranking.systems,
                "pairs": ranking.pairs,
            }
            for ranking in rankings
        ],
        "refused": {asked.labels[metric]: reason for metric, reason in refused.items()},
    }
