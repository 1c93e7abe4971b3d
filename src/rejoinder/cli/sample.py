"""``rejoinder sample``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli.options import JsonOption, count_option, output_file, seed_option
from rejoinder.cli.terminal import print_json, say
from rejoinder.verbs.arguments import SEED


def sample(
    pairs: Annotated[list[str], typer.Argument(metavar="PAIRS", help="Parquet files of pairs.")],
    output: Annotated[Path, output_file("Output file of the pairs (Parquet).")],
    count: Annotated[
        int | None,
        count_option("--pairs", "Number of pairs; default all.", short="-n"),
    ] = None,
    split: Annotated[
        str | None, typer.Option("--split", metavar="NAME", help="Use pairs of this split only.")
    ] = None,
    seed: Annotated[int, seed_option()] = SEED,
    json: JsonOption = False,
) -> None:
    """Join files of pairs, and draw some of the pairs at random.

    For a pool that is searched in minutes, to measure how much data is needed, or, with --split,
    to train a system on other dialogues than the evaluator.
    """
    from rejoinder.verbs.sample import sample as run

    result = run(pairs, output=output, count=count, split=split, seed=seed)
    if json:
        print_json(result)
    else:
        say(f"{output}: {result.pairs:,} of {result.available:,} pairs")
