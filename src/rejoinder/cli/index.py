"""``rejoinder index``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rejoinder.cli.monitor import TerminalMonitor
from rejoinder.cli.options import (
    AnyLanguageOption,
    ByOption,
    JsonOption,
    LanguageOption,
    PairsArgument,
    SplitOption,
    output_folder,
)
from rejoinder.cli.terminal import print_json, say, show


def index(
    pairs: PairsArgument,
    output: Annotated[Path, output_folder("Folder of the index.")],
    by: ByOption = None,
    split: SplitOption = None,
    language: LanguageOption = None,
    any_language: AnyLanguageOption = False,
    json: JsonOption = False,
) -> None:
    """Prepare pairs for 'expand' and 'reply'.

    The folder holds the texts and the index; it appears when it is complete. An interrupted run
    continues where it stopped.
    """
    from rejoinder.verbs.index import index as run

    result = run(
        pairs,
        output=output,
        by=by,
        split=split,
        language=language,
        any_language=any_language,
        monitor=TerminalMonitor(),
    )
    if json:
        print_json(result)
        return
    from rejoinder.reporting.tables import plain_table

    table = plain_table("index", "count", right=[1])
    table.add_row("pairs", f"{result.manifest.rows:,}")
    for reason, count in result.manifest.notes.items():
        table.add_row(f"  {reason}", f"{count:,}")
    show(table)
    say(f"{result.folder}: {result.retriever}, {result.megabytes:,.1f} MB")
