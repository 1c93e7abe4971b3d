"""``rejoinder join``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli.options import JsonOption, output_file
from rejoinder.cli.terminal import print_json, say


def join(
    files: Annotated[list[str], typer.Argument(metavar="FILES", help="JSONL, .gz or .zst.")],
    output: Annotated[Path, output_file("Output file.")],
    json: JsonOption = False,
) -> None:
    """Put items together, or scores: replies of several systems, runs of 'score'.

    Duplicate items or scores are an error.
    """
    from rejoinder.verbs.join import join as run

    result = run(files, output=output)
    if json:
        print_json(result)
    else:
        say(f"{output}: {result.lines:,} lines")
