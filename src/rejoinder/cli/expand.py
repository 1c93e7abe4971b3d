"""``rejoinder expand``: items in, the same items with retrieved references out."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli.common import (
    JsonOption,
    LanguageOption,
    check_output,
    check_place,
    print_json,
    say,
    show,
)
from rejoinder.cli.evaluator import pool_in
from rejoinder.cli.index import ByOption, SplitOption
from rejoinder.cli.progress import pieces_progress
from rejoinder.errors import UsageError

MOST = 1000


def expand(
    items: Annotated[str, typer.Argument(metavar="ITEMS", help="JSONL, .gz, .zst, or - .")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the items go.")
    ],
    pool: Annotated[
        str | None,
        typer.Option("--pool", metavar="PAIRS|FOLDER", help="Pairs, or an index of them."),
    ] = None,
    evaluator: Annotated[
        str | None,
        typer.Option("--evaluator", metavar="DIR", help="Take its pool, and rate what is found."),
    ] = None,
    by: ByOption = None,
    k: Annotated[
        int | None,
        typer.Option(
            "--k",
            metavar="N",
            min=1,
            max=MOST,
            help="References to add: 15, or as the evaluator has it.",
        ),
    ] = None,
    parrot: Annotated[
        bool | None,
        typer.Option(
            "--parrot/--no-parrot",
            help="Add the utterance itself too, as is usual.",
            show_default=False,
        ),
    ] = None,
    keep_leaks: Annotated[
        bool, typer.Option("--keep-leaks", help="Also take pairs that the test set has.")
    ] = False,
    split: SplitOption = None,
    language: LanguageOption = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine", metavar="NAME", help="Search on duckdb, local[N] or spark://host:port."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Add references to items: replies to similar utterances, found in a pool.

    Each item keeps its references and gets the replies of the k most similar
    pairs, no text twice, and its own utterance, as a parrot would return it.
    Pairs whose utterance is nearly the last turn of an item are left out.
    With --evaluator each of them gets a weight from -1 to 1.
    """
    from rejoinder.retrieve.base import make_retriever
    from rejoinder.retrieve.expand import DEFAULT
    from rejoinder.retrieve.expand import expand as run
    from rejoinder.retrieve.references import STANDARD, Settings, Weigh, unrated

    check_place(output)
    check_output(output, [items, pool, evaluator])
    weigh: Weigh = unrated
    planned = STANDARD
    if evaluator is not None:
        from rejoinder.evaluator import open_evaluator
        from rejoinder.evaluator.manifest import POOL
        from rejoinder.evaluator.rating import rated

        if pool is not None or by is not None or split is not None:
            raise UsageError(
                "--evaluator has a pool and a retriever: leave out --pool, --by, --split"
            )
        opened = open_evaluator(evaluator)
        pool = str(opened.path / POOL)
        planned = Settings(opened.manifest.retrieval.k, opened.manifest.retrieval.parrot)
        weigh = partial(rated, opened)
    if pool is None:
        raise UsageError("where should references come from? Give --evaluator DIR or --pool PAIRS")
    pool = pool_in(pool)
    settings = Settings(
        planned.k if k is None else k, planned.parrot if parrot is None else parrot, keep_leaks
    )
    account = run(
        items,
        pool,
        output,
        # an index knows its own
        None if by is None and Path(pool).is_dir() else make_retriever(by or DEFAULT, language),
        settings,
        split=split,
        engine=engine,
        weigh=weigh,
        watch=pieces_progress,
    )
    if json:
        print_json(account.plain())
        return
    from rejoinder.reporting.expand import expansion_table

    show(expansion_table(account))
    if account.pairs < settings.k:
        say(f"the pool has only {account.pairs:,} pairs; all that are similar were taken")
    for reason, count in account.unexpanded.items():
        say(f"{count:,} items left as they were: {reason}")
    say(f"{output}: by {account.retriever}")
