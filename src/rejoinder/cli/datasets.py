"""``rejoinder datasets``: judged sets of replies, as items."""

from __future__ import annotations

from typing import Annotated

import typer

from rejoinder.cli.common import JsonOption, OutputOption, print_json, say, show

app = typer.Typer(
    help="List and export sets of replies that people have judged.", no_args_is_help=True
)


@app.command("list")
def list_sets(json: JsonOption = False) -> None:
    """The sets that can be exported, with source and licence."""
    from dataclasses import asdict

    from rejoinder.datasets import CATALOGUE

    if json:
        print_json({"datasets": [asdict(dataset) for dataset in CATALOGUE.values()]})
        return
    from rejoinder.reporting.tables import plain_table

    table = plain_table("name", "what")
    table.columns[0].no_wrap = True
    for dataset in CATALOGUE.values():
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
        typer.Option("--system", metavar="NAME", help="Only this one's replies; repeat for more."),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Write a judged set as items; the files are found through REJOINDER_DATA."""
    from rejoinder.datasets import load
    from rejoinder.errors import UsageError
    from rejoinder.io import open_output, write_jsonl
    from rejoinder.spec import did_you_mean

    items = list(load(name, references))
    if system:
        there = {item.system for item in items}
        if unknown := [f"--system {s}: {did_you_mean(s, there)}" for s in system if s not in there]:
            raise UsageError(*unknown)
        items = [item for item in items if item.system in system]
    with open_output(output) as stream:
        write_jsonl(stream, items)
    given = sum(len(item.references) for item in items)
    say(f"{name}: {len(items):,} items with {given:,} references")
