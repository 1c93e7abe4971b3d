"""``rejoinder run``: a recipe, step by step; what is done already is not done again."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder.cli.common import JsonOption, print_json, say, show
from rejoinder.errors import UsageError

if TYPE_CHECKING:
    from rejoinder.recipe.file import Recipe, Step, Table
    from rejoinder.recipe.run import Outcome

LAST_LINES = 20
"""How much of a failed step's messages is repeated."""


def run(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A TOML file.")],
    work: Annotated[
        Path | None,
        typer.Option("--work", metavar="DIR", help="Where all files go; RECIPE's name + '-run'."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change a variable; repeat."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print the commands and what is done already.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Run the steps of a recipe and print its table.

    A step is skipped when its files are there and nothing that they were made of has changed.
    """
    from rejoinder.recipe.file import read_recipe
    from rejoinder.recipe.run import StepFailed, run_recipe

    work = Path(f"{Path(recipe).stem}-run") if work is None else work
    asked = read_recipe(recipe, work, _changes(set_ or []))
    if dry_run:
        _print_plan(asked, work, json)
        return
    total = len(asked.steps)
    on_terminal = sys.stderr.isatty()

    def started(step: Step, number: int) -> None:
        if on_terminal:
            say(f"{number}/{total} {step.name} …")

    def finished(outcome: Outcome, number: int) -> None:
        took = "as before" if outcome.state == "skipped" else f"{outcome.seconds:.1f} s"
        say(f"{number}/{total} {outcome.name} … {took}")

    try:
        outcomes = run_recipe(
            asked, work, on_start=started, on_finish=finished, show_messages=on_terminal
        )
    except StepFailed as failure:
        if not on_terminal and failure.log.is_file():
            for line in failure.log.read_text("utf-8", "replace").splitlines()[-LAST_LINES:]:
                say(f"  {line}")
        raise
    results = None if asked.table is None else _write_table(asked.table)
    if json:
        steps = [
            {"name": o.name, "state": o.state, "seconds": round(o.seconds, 3)} for o in outcomes
        ]
        summary = {"recipe": recipe, "work": str(work), "steps": steps, "results": results}
        print_json(summary)
    elif results is not None and asked.table is not None:
        from rejoinder.reporting.collected import collected_tables

        for table in collected_tables(asked.table.title, results):
            show(table)


def _changes(pairs: list[str]) -> dict[str, str]:
    changes = {}
    problems = []
    for pair in pairs:
        name, mark, value = pair.partition("=")
        if not mark or not name:
            problems.append(f"--set {pair}: expected NAME=VALUE")
        elif name in changes:
            problems.append(f"--set {name}: given twice")
        changes[name] = value
    if problems:
        raise UsageError(*problems)
    return changes


def _print_plan(recipe: Recipe, work: Path, json: bool) -> None:
    from rejoinder.recipe.run import pending

    waiting = pending(recipe, work)
    if json:
        steps = [
            {
                "name": step.name,
                "state": "to do" if waits else "done",
                "run": step.arguments,
                "reads": step.reads,
                "makes": step.makes,
            }
            for step, waits in zip(recipe.steps, waiting, strict=True)
        ]
        print_json({"recipe": recipe.path, "work": str(work), "steps": steps})
        return
    for number, (step, waits) in enumerate(zip(recipe.steps, waiting, strict=True), 1):
        state = "" if waits else " (done)"
        goes = "" if step.stdout is None else f" > {shlex.quote(step.stdout)}"
        sys.stdout.write(f"# {number}/{len(recipe.steps)} {step.name}{state}\n")
        sys.stdout.write(f"rejoinder {shlex.join(step.arguments)}{goes}\n")


def _write_table(table: Table) -> list[dict[str, Any]]:
    import msgspec

    from rejoinder.io import open_output
    from rejoinder.recipe.results import collect

    results = collect(table)
    with open_output(table.output) as stream:
        payload = {"title": table.title, "results": results}
        stream.write(msgspec.json.format(msgspec.json.encode(payload), indent=2) + b"\n")
    return results
