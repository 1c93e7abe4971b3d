"""``rejoinder score``: items in, scores out, and a table of what they sum up to."""

from __future__ import annotations

import os
import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder.cli.common import (
    JsonOption,
    LanguageOption,
    MetricsOption,
    OutputOption,
    ResamplesOption,
    SeedOption,
    check_output,
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
    plain_coverage,
    plain_seen,
    read_twice,
    say_coverage,
    watched,
)
from rejoinder.cli.progress import progress

if TYPE_CHECKING:
    from rejoinder.metrics.evaluate import Judged
    from rejoinder.metrics.request import Requests
    from rejoinder.metrics.summary import Summary


def score(
    items: Annotated[str, typer.Argument(metavar="ITEMS", help="JSONL, .gz, .zst, or - .")],
    metric: MetricsOption,
    output: OutputOption = None,
    evaluator: EvaluatorOption = None,
    strict: StrictOption = False,
    language: LanguageOption = None,
    parts: Annotated[
        bool, typer.Option("--parts", help="Write ingredients of scores too.")
    ] = False,
    json: JsonOption = False,
    resamples: ResamplesOption = 1000,
    seed: SeedOption = 12345,
) -> None:
    """Score replies with one or more metrics.

    Scores go to FILE and a summary to stdout; without -o, scores go to stdout and the summary
    to stderr. A terminal gets the summary only, unless -o - asks for more. Metrics that ask an
    evaluator (see 'rejoinder fit') need --evaluator.
    """
    from rejoinder.errors import UsageError
    from rejoinder.io import JsonLines, open_output, read_items, write_jsonl
    from rejoinder.items import Item
    from rejoinder.metrics.evaluate import evaluate, judge_sets
    from rejoinder.metrics.records import item_scores, set_scores
    from rejoinder.metrics.request import notes, requests
    from rejoinder.metrics.summary import Summarizer

    check_output(output, [items, evaluator])
    asked = requests(metric, language, evaluator)
    summary_only = output is None and sys.stdout.isatty()
    output = None if str(output) == "-" else output
    if json and output is None:
        raise UsageError("--json prints the summary to stdout, where the scores go: add -o FILE")
    source = JsonLines(items)
    summarizer = Summarizer(asked.item_metrics, resamples=resamples, seed=seed)
    kept: list[Item] = []
    evaluators = evaluators_of(asked, evaluator, strict=strict)
    tallies: dict[str, Any] = {}
    within: list[float] = []

    def tell(done: int, total: int) -> None:
        """Of metrics that judge all items at once, when all have been read."""
        within[:] = [done / total]
        advance(done)

    with (
        read_twice(source) if evaluators else nullcontext(),
        naming(source.name),
        open_output(Path(os.devnull) if summary_only else output) as stream,
        progress("scoring", lambda: within[-1] if within else source.fraction) as advance,
    ):
        examined, seen = guard(read_items(source), evaluators, strict=strict)
        done = 0
        scored = evaluate(
            read_items(source), asked.item_metrics, examined=examined, on_progress=tell
        )
        for batch, results in watched(summarizer.watch(scored), tallies):
            write_jsonl(stream, item_scores(asked.items, batch, results, parts=parts))
            if asked.sets:
                kept.extend(batch)
            done += len(batch)
            advance(done)
        judged = judge_sets(kept, asked.set_metrics)
        write_jsonl(stream, set_scores(asked.sets, judged))
        summaries = summarizer.summaries()
    for note in notes(asked):
        say(note)
    for name, tally in tallies.items():
        say_coverage(name, tally.covered())
    if json:
        found = as_json(asked, summaries, judged)
        if evaluators:
            found |= {"coverage": plain_coverage(tallies), "seen": plain_seen(seen)}
        print_json(found)
    else:
        print_tables(asked, summaries, judged, stderr=output is None)
        if summary_only:
            say("the scores of each item: add -o FILE, or -o - to see them here")


def print_tables(
    asked: Requests, summaries: list[Summary], judged: list[Judged], *, stderr: bool
) -> None:
    from rejoinder.reporting.tables import judged_table, score_tables

    for table in score_tables(asked.labels, summaries):
        show(table, stderr=stderr)
    if judged:
        show(judged_table(asked.labels, judged), stderr=stderr)
    reasons = Counter[tuple[str, str]]()
    for row in summaries:
        for reason, count in row.unscored.items():
            reasons[asked.labels[row.metric], reason] += count
    for each in judged:
        label = asked.labels[each.metric]
        reasons.update((label, value) for value in each.contexts.values() if isinstance(value, str))
    for (name, reason), count in reasons.items():
        say(f"{name}: {count:,} unscored: {reason}")
    for request in [*asked.items, *asked.sets]:
        say(f"signature {request.metric.signature()}")


def as_json(asked: Requests, summaries: list[Summary], judged: list[Judged]) -> dict[str, Any]:
    labels = asked.labels
    return {
        "results": [
            {
                "metric": labels[row.metric],
                "system": row.system,
                "corpus": row.corpus,
                "mean": row.mean,
                "scored": row.scored,
                "unscored": row.unscored,
                "signature": row.metric.signature(),
            }
            for row in summaries
        ]
        + [
            {
                "metric": labels[row.metric],
                "system": row.system,
                "value": row.value,
                "unscored": {} if row.reason is None else {row.reason: 1},
                "signature": row.metric.signature(),
            }
            for row in judged
        ]
    }
