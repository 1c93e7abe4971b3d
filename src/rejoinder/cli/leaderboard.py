"""``rejoinder leaderboard``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli.monitor import TerminalMonitor
from rejoinder.cli.options import JsonOption, ResamplesOption, SeedOption, output_file
from rejoinder.cli.terminal import print_json, say, show
from rejoinder.verbs.arguments import RESAMPLES, SEED


def leaderboard(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="TOML: judged sets and their files of scores.")
    ],
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            metavar="DIR",
            help="Folder of the files in FILE; by default its own.",
        ),
    ] = None,
    evaluator: Annotated[
        list[str] | None,
        typer.Option(
            "--evaluator",
            metavar="DIR",
            help="Count contexts of the sets in its training data; repeatable.",
        ),
    ] = None,
    output: Annotated[Path | None, output_file("Also write a page (HTML).")] = None,
    json: JsonOption = False,
    resamples: ResamplesOption = RESAMPLES,
    seed: SeedOption = SEED,
) -> None:
    """Compare metrics on every judged set: agreement, ranks, costs, contamination.

    Ranks are what can be told: metrics that chance alone may have put in order share ranks. A
    metric that was fitted to ratings of a set is ranked apart there, and one that lacks scores is
    not ranked.
    """
    from rejoinder.reporting.leaderboard.tables import (
        board_notes,
        cost_table,
        overall_table,
        set_table,
    )
    from rejoinder.verbs.leaderboard import leaderboard as run

    result = run(
        file,
        folder=folder,
        evaluators=evaluator or (),
        output=output,
        resamples=resamples,
        seed=seed,
        monitor=TerminalMonitor(),
    )
    if json:
        print_json(result)
        return
    board = result.board
    for table in (overall_table(board), *map(set_table, board.sets), cost_table(board)):
        if table is not None:
            show(table)
    for note in board_notes(board):
        say(note)
