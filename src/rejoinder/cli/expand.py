"""``rejoinder expand``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli.monitor import TerminalMonitor
from rejoinder.cli.options import (
    AnyLanguageOption,
    ByOption,
    ColumnsOption,
    ItemsArgument,
    JsonOption,
    KeepLeaksOption,
    LanguageOption,
    SplitOption,
    count_option,
    output_file,
    parse_columns,
)
from rejoinder.cli.terminal import print_json, say, show
from rejoinder.verbs.arguments import MAX_K


def expand(
    items: ItemsArgument,
    output: Annotated[Path, output_file("Output file of the items.")],
    pool: Annotated[
        str | None,
        typer.Option("--pool", metavar="PATH", help="File of pairs, or folder of 'index'."),
    ] = None,
    evaluator: Annotated[
        str | None,
        typer.Option(
            "--evaluator", metavar="DIR", help="Use its pool, and its rater for the weights."
        ),
    ] = None,
    by: ByOption = None,
    k: Annotated[
        int | None,
        count_option("--k", "References to add: 15, or as the evaluator has it.", max=MAX_K),
    ] = None,
    parrot: Annotated[
        bool | None,
        typer.Option(
            "--parrot/--no-parrot",
            help="Also add the utterance itself (default).",
            show_default=False,
        ),
    ] = None,
    keep_leaks: KeepLeaksOption = False,
    split: SplitOption = None,
    columns: ColumnsOption = None,
    language: LanguageOption = None,
    any_language: AnyLanguageOption = False,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine", metavar="NAME", help="Search on duckdb, local[N] or spark://host:port."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Add references to items: replies from a pool, or those of a language model.

    Each item keeps its references and gets the replies of the k most similar pairs, without
    duplicates, and its own utterance, as a parrot would return it. Pairs whose utterance is
    (nearly) the last turn of an item are left out. With --evaluator each reference gets a weight
    from -1 to 1. With --by 'llm(url=…,model=…)' a language model is sent the contexts and writes
    k different replies (8) to each.
    """
    from rejoinder.verbs.expand import expand as run

    result = run(
        items,
        output=output,
        pool=pool,
        evaluator=evaluator,
        by=by,
        k=k,
        parrot=parrot,
        keep_leaks=keep_leaks,
        split=split,
        columns=parse_columns(columns),
        language=language,
        any_language=any_language,
        engine=engine,
        monitor=TerminalMonitor(),
    )
    if json:
        print_json(result)
        return
    from rejoinder.reporting.expand_tables import expansion_table, writing_table
    from rejoinder.retrieve.expand_items import ExpansionReport

    report = result.report
    if isinstance(report, ExpansionReport):
        show(expansion_table(report))
        if report.pairs < result.k:
            say(f"the pool has only {report.pairs:,} pairs; all that are similar were used")
        by = report.retriever
    else:
        show(writing_table(report))
        by = report.writer
    for reason, count in report.unexpanded.items():
        say(f"{count:,} items left as they were: {reason}")
    say(f"{output}: by {by}")
