"""``rejoinder contexts``: pairs in, a test set out: contexts, and what people replied."""

from __future__ import annotations

from typing import Annotated

import typer

from rejoinder.cli.common import OutputOption, check_output, say, seeded
from rejoinder.errors import MissingExtra


def contexts(
    pairs: Annotated[str, typer.Argument(metavar="PAIRS", help="Parquet, by 'corpus'.")],
    output: OutputOption = None,
    split: Annotated[str, typer.Option("--split", metavar="NAME", help="Of the pairs.")] = "test",
    count: Annotated[
        int, typer.Option("--contexts", "-n", metavar="N", min=1, help="How many.")
    ] = 200,
    words: Annotated[
        int, typer.Option("--words", metavar="N", min=0, help="At least, of turn and reply each.")
    ] = 0,
    as_references: Annotated[
        bool, typer.Option("--as-references", help="The reply is the reference, nobody's answer.")
    ] = False,
    seed: Annotated[int, seeded("Which ones.")] = 12345,
) -> None:
    """Draw contexts from held-out pairs, with the replies that people gave.

    They are the items of the system 'human', without references; or, with
    --as-references, contexts for 'reply', each with the human reply as its
    one reference. The same seed draws the same contexts both ways.
    """
    try:
        from rejoinder.logs.held_out import draw_pairs
    except ImportError:
        raise MissingExtra("pairs are Parquet files: pip install pyarrow") from None
    from rejoinder.io import open_output, write_jsonl

    check_output(output, [pairs])
    drawn = draw_pairs(pairs, split=split, count=count, words=words, seed=seed)
    with open_output(output) as stream:
        write_jsonl(stream, drawn.contexts() if as_references else drawn.items())
    said = f" of {words} words or more" if words else ""
    say(f"{len(drawn.rows):,} of {drawn.fit:,} {split} contexts and replies{said}")
