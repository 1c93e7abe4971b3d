"""``rejoinder index``: a pool of pairs made ready to be asked again and again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli.common import JsonOption, LanguageOption, print_json, say, show
from rejoinder.cli.progress import pieces_progress
from rejoinder.errors import UsageError

ByOption = Annotated[
    str | None,
    typer.Option("--by", metavar="SPEC", help="A retriever, such as 'bm25(on=both)'."),
]
SplitOption = Annotated[
    str | None,
    typer.Option("--split", metavar="NAME", help="Only pairs of this split, such as train."),
]


def index(
    pairs: Annotated[str, typer.Argument(metavar="PAIRS", help="Parquet, as 'corpus' writes it.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the index goes.")
    ],
    by: ByOption = None,
    split: SplitOption = None,
    language: LanguageOption = None,
    json: JsonOption = False,
) -> None:
    """Prepare pairs for 'expand' and 'reply'.

    The folder holds the texts and all numbers, and is whole or absent. A run
    that was interrupted goes on where it stopped.
    """
    import msgspec

    from rejoinder.retrieve.base import make_retriever
    from rejoinder.retrieve.expand import DEFAULT
    from rejoinder.retrieve.folder import build_index

    retriever = make_retriever(by or DEFAULT, language)
    output = Path(str(output).rstrip("/"))
    if not output.parent.is_dir():
        raise UsageError(f"{output}: cannot be written: there is no such folder")
    with pieces_progress("indexing") as advance:
        manifest = build_index(pairs, retriever, output, split=split, on_progress=advance)
    if json:
        print_json(msgspec.to_builtins(manifest))
        return
    from rejoinder.reporting.tables import plain_table

    table = plain_table("index", "count", right=[1])
    table.add_row("pairs", f"{manifest.rows:,}")
    for reason, count in manifest.notes.items():
        table.add_row(f"  {reason}", f"{count:,}")
    show(table)
    size = sum(manifest.files.values()) / 2**20
    say(f"{output}: {retriever}, {size:,.1f} MB")
