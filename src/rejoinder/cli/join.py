"""``rejoinder join``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli.monitor import TerminalMonitor
from rejoinder.cli.options import ColumnsOption, JsonOption, output_file, parse_columns
from rejoinder.cli.terminal import print_json, say


def join(
    files: Annotated[
        list[str], typer.Argument(metavar="FILES", help="JSONL, CSV, TSV or Parquet.")
    ],
    output: Annotated[Path, output_file("Output file.")],
    ratings: Annotated[
        str | None,
        typer.Option(
            "--ratings",
            metavar="FILE",
            help="Rated items, as 'annotate export' writes them: the items get their ratings.",
        ),
    ] = None,
    columns: ColumnsOption = None,
    json: JsonOption = False,
) -> None:
    """Put items together, or scores: replies of several systems, runs of 'score'.

    Duplicate items or scores are an error.
    """
    from rejoinder.verbs.join import join as run

    result = run(
        files,
        output=output,
        ratings=ratings,
        columns=parse_columns(columns),
        monitor=TerminalMonitor(),
    )
    if json:
        print_json(result)
    else:
        say(f"{output}: {result.lines:,} lines")
