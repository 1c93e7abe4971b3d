"""``rejoinder run``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.options import JsonOption, flag
from rejoinder.cli.terminal import print_json, say, show

if TYPE_CHECKING:
    from rejoinder.recipe.file import Step
    from rejoinder.recipe.run import Outcome, StepFailed
    from rejoinder.verbs.run import PlanResult

MAX_LINES = 20
"""Messages of a failed step that are repeated."""


def run(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A TOML file.")],
    work: Annotated[
        Path | None,
        typer.Option("--work", metavar="DIR", help="Folder of all files; NAME-run by default."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change a variable; repeatable."),
    ] = None,
    dry_run: Annotated[
        bool, flag("--dry-run", "Only print the commands and which of them are done.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Run the steps of a recipe and print its table.

    A step is skipped if its outputs exist and its inputs are unchanged.
    """
    from rejoinder.recipe.run import StepFailed
    from rejoinder.verbs.run import PlanResult
    from rejoinder.verbs.run import run as start

    on_terminal = sys.stderr.isatty()

    def started(step: Step, number: int, total: int) -> None:
        if on_terminal:
            say(f"{number}/{total} {step.name} …")

    def finished(outcome: Outcome, number: int, total: int) -> None:
        took = "as before" if outcome.state == "skipped" else f"{outcome.seconds:.1f} s"
        say(f"{number}/{total} {outcome.name} … {took}")

    try:
        result = start(
            recipe,
            work=work,
            variables=_variables(set_ or []),
            dry_run=dry_run,
            on_start=started,
            on_finish=finished,
            on_wait=say_running,
            show_messages=on_terminal,
        )
    except StepFailed as failure:
        say_log(failure, on_terminal=on_terminal)
        raise
    if json:
        print_json(result)
    elif isinstance(result, PlanResult):
        _print_plan(result)
    elif result.results is not None and result.recipe.table is not None:
        from rejoinder.reporting.recipe_tables import collected_tables

        for table in collected_tables(result.recipe.table.title, result.results):
            show(table)


def say_running(step: Step, seconds: float, log: Path) -> None:
    """Report how long a step has been running, and its last message."""
    from rejoinder.cli.monitor import duration

    lines = log.read_text("utf-8", "replace").splitlines() if log.is_file() else []
    last = f" ({lines[-1].strip()})" if lines else ""
    say(f"{step.name}: still running, {duration(seconds)}{last}")


def say_log(failure: StepFailed, *, on_terminal: bool) -> None:
    """Repeat the last messages of a failed step, unless they were shown."""
    if not on_terminal and failure.log.is_file():
        for line in failure.log.read_text("utf-8", "replace").splitlines()[-MAX_LINES:]:
            say(f"  {line}")


def _variables(pairs: list[str]) -> dict[str, str]:
    from rejoinder.errors import UsageError

    variables: dict[str, str] = {}
    problems = []
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            problems.append(f"--set {pair}: expected NAME=VALUE")
        elif name in variables:
            problems.append(f"--set {name}: given twice")
        variables[name] = value
    if problems:
        raise UsageError(*problems)
    return variables


def _print_plan(plan: PlanResult) -> None:
    steps = plan.recipe.steps
    for number, (step, pending) in enumerate(zip(steps, plan.pending, strict=True), 1):
        state = "" if pending else " (done)"
        goes = "" if step.stdout is None else f" > {shlex.quote(step.stdout)}"
        sys.stdout.write(f"# {number}/{len(steps)} {step.name}{state}\n")
        sys.stdout.write(f"rejoinder {shlex.join(step.arguments)}{goes}\n")
