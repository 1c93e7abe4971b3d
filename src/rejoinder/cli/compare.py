"""``rejoinder compare``: which bot is better, and how sure that is."""

from __future__ import annotations

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
    progress,
    say,
    show,
)

if TYPE_CHECKING:
    from rejoinder.meta.ranking import Ranking
    from rejoinder.metrics.base import Metric
    from rejoinder.metrics.request import Requests


def compare(
    items: Annotated[
        str, typer.Argument(metavar="ITEMS", help="Replies of two or more systems, JSONL.")
    ],
    metric: MetricsOption,
    language: LanguageOption = None,
    json: JsonOption = False,
    resamples: ResamplesOption = 1000,
    seed: SeedOption = 12345,
) -> None:
    """Rank systems, with confidence intervals and groups that can't be told apart.

    Systems are compared on the contexts that all of them answered: intervals by paired
    bootstrap over contexts, p-values by paired bootstrap and by approximate randomisation.
    """
    from rejoinder.errors import DataError
    from rejoinder.io import JsonLines, read_items
    from rejoinder.items import Item
    from rejoinder.meta.ranking import Statistics, rank_sets
    from rejoinder.metrics.evaluate import evaluate, judge_sets
    from rejoinder.metrics.request import requests

    asked = requests(metric, language)
    source = JsonLines(items)
    statistics = Statistics(asked.item_metrics)
    kept: list[Item] = []
    with naming(source.name):
        with progress("scoring", lambda: source.fraction) as advance:
            done = 0
            for batch, results in evaluate(read_items(source), asked.item_metrics):
                statistics.add(batch, results)
                if asked.sets:
                    kept.extend(batch)
                done += len(batch)
                advance(done)
        rankings = statistics.rankings(resamples=resamples, seed=seed)
        refused: dict[Metric, str] = {}
        if asked.sets:
            judged = judge_sets(kept, asked.set_metrics)
            by_sets, refused = rank_sets(
                judged, list(statistics.systems), resamples=resamples, seed=seed
            )
            rankings += by_sets
        if not rankings:
            problems = [f"{asked.labels[each]}: {reason}" for each, reason in refused.items()]
            raise DataError("nothing to compare: " + "; ".join(problems))
    if json:
        print_json(as_json(asked, rankings, refused))
        return
    from rejoinder.report.tables import pairs_table, ranking_table

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
