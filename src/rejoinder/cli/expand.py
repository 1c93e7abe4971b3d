"""``rejoinder expand``: items in, the same items with retrieved references out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli.common import (
    JsonOption,
    LanguageOption,
    check_output,
    pieces_progress,
    print_json,
    say,
    show,
)
from rejoinder.cli.index import ByOption, SplitOption
from rejoinder.errors import UsageError

MOST = 1000


def expand(
    items: Annotated[str, typer.Argument(metavar="ITEMS", help="JSONL, .gz, .zst, or - .")],
    pool: Annotated[
        str,
        typer.Option(
            "--pool", "--evaluator", metavar="PAIRS|FOLDER", help="Pairs, or an index of them."
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the items go.")
    ],
    by: ByOption = None,
    k: Annotated[
        int, typer.Option("--k", metavar="N", min=1, max=MOST, help="References to add.")
    ] = 15,
    parrot: Annotated[
        bool, typer.Option("--parrot/--no-parrot", help="Add the utterance itself too.")
    ] = True,
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
    """
    from rejoinder.retrieve.base import make_retriever
    from rejoinder.retrieve.expand import DEFAULT, Settings
    from rejoinder.retrieve.expand import expand as run

    if str(output) == "-" or not output.parent.is_dir() or output.is_dir():
        raise UsageError(f"{output}: cannot be written: there is no such folder, or it is one")
    check_output(output, [items, pool])
    account = run(
        items,
        pool,
        output,
        # an index knows its own
        None if by is None and Path(pool).is_dir() else make_retriever(by or DEFAULT, language),
        Settings(k, parrot, keep_leaks),
        split=split,
        engine=engine,
        watch=pieces_progress,
    )
    if json:
        print_json(account.plain())
        return
    from rejoinder.report.expand import expansion_table

    show(expansion_table(account))
    if account.pairs < k:
        say(f"the pool has only {account.pairs:,} pairs; all that are similar were taken")
    for reason, count in account.unexpanded.items():
        say(f"{count:,} items left as they were: {reason}")
    say(f"{output}: by {account.retriever}")
