"""``rejoinder show``."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from rejoinder.cli.monitor import TerminalMonitor
from rejoinder.cli.options import (
    ColumnsOption,
    ItemsArgument,
    JsonOption,
    LanguageOption,
    parse_columns,
)
from rejoinder.cli.terminal import print_json
from rejoinder.cli.terminal import show as print_table


def show(
    items: ItemsArgument,
    id: Annotated[
        str | None, typer.Argument(metavar="ID", help="Id of the item; without it, a list.")
    ] = None,
    scores: Annotated[
        str | None, typer.Option("--scores", metavar="FILE", help="Also show its scores.")
    ] = None,
    columns: ColumnsOption = None,
    language: LanguageOption = None,
    json: JsonOption = False,
) -> None:
    """Show an item: context, reply, and references with similarity and weight.

    Words that the reply and a reference share are underlined; outside a terminal they are in
    brackets.
    """
    from rejoinder.reporting import item_view as tables
    from rejoinder.verbs.show import ListResult
    from rejoinder.verbs.show import show as run

    result = run(
        items,
        id,
        scores=scores,
        columns=parse_columns(columns),
        language=language,
        max_items=None if json else tables.MAX_ITEMS,
        monitor=TerminalMonitor(),
    )
    if json:
        print_json(result)
        return
    if isinstance(result, ListResult):
        print_table(tables.items_table(result.items, result.more))
        return
    plain = (
        not sys.stdout.isatty()
        or bool(os.environ.get("NO_COLOR"))
        or os.environ.get("TERM") == "dumb"
    )
    view = result.view
    print_table(tables.dialogue_table(view, plain=plain))
    if view.references:
        print_table(tables.references_table(view, plain=plain))
    if view.scores:
        print_table(tables.scores_table(view))
