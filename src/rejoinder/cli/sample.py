"""``rejoinder sample``: pairs of several files in one, all of them or a random part."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli.common import check_output, say, seeded
from rejoinder.errors import MissingExtra


def sample(
    pairs: Annotated[list[str], typer.Argument(metavar="PAIRS…", help="Parquet files of pairs.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the pairs go (Parquet).")
    ],
    count: Annotated[
        int | None, typer.Option("--pairs", "-n", metavar="N", min=1, help="How many; default all.")
    ] = None,
    seed: Annotated[int, seeded("Which ones.")] = 12345,
) -> None:
    """Join files of pairs, and draw some of the pairs at random.

    For a pool that is searched in minutes, or an experiment on how much data are needed.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise MissingExtra("pairs are Parquet files: pip install pyarrow") from None
    from rejoinder.logs.sample import sample_pairs

    check_output(output, pairs)
    written, total = sample_pairs(pairs, output, count, seed)
    say(f"{output}: {written:,} of {total:,} pairs")
