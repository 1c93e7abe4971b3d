"""``rejoinder datasets``."""

from __future__ import annotations

from typing import Annotated

import typer

from rejoinder.cli.options import (
    JsonOption,
    OutputOption,
    SeedOption,
    count_option,
    stdout_problems,
)
from rejoinder.cli.terminal import print_json, say, show
from rejoinder.verbs.arguments import SEED

app = typer.Typer(help="List and export test sets that people have rated.", no_args_is_help=True)


@app.command("list")
def list_sets(json: JsonOption = False) -> None:
    """List the test sets that can be exported, with source and licence."""
    from rejoinder.verbs import datasets

    result = datasets.list()
    if json:
        print_json(result)
        return
    from rejoinder.reporting.tables import plain_table

    table = plain_table("name", "what it is")
    table.columns[0].no_wrap = True
    for dataset in result.datasets:
        table.add_row(dataset.name, dataset.description)
        table.add_row("", f"references: {', '.join(dataset.references)}")
        table.add_row("", f"licence: {dataset.licence}")
    show(table)


@app.command("export")
def export(
    name: Annotated[str, typer.Argument(metavar="NAME", help="See 'rejoinder datasets list'.")],
    references: Annotated[
        str | None,
        typer.Option("--references", metavar="KIND", help="single, multi, scored or none."),
    ] = None,
    system: Annotated[
        list[str] | None,
        typer.Option("--system", metavar="NAME", help="Only replies of this system; repeatable."),
    ] = None,
    contexts: Annotated[
        int | None, count_option("--contexts", "So many contexts, drawn at random.")
    ] = None,
    seed: SeedOption = SEED,
    output: OutputOption = None,
    json: JsonOption = False,
) -> None:
    """Write a test set as items; REJOINDER_DATA names the folder of its files."""
    from rejoinder.errors import UsageError
    from rejoinder.verbs import datasets

    if problems := stdout_problems(json, output, "items"):
        raise UsageError(*problems)
    result = datasets.export(
        name,
        references=references,
        systems=system or (),
        contexts=contexts,
        seed=seed,
        output="-" if output is None else output,
    )
    if json:
        print_json(result)
    else:
        say(f"{name}: {len(result.items):,} items with {result.references:,} references")
