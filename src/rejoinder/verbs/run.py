"""``run``: the steps of a recipe; finished steps are not done again."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from rejoinder.files.output import open_output
from rejoinder.recipe.file import Recipe, Step, Table, read_recipe
from rejoinder.recipe.results import collect
from rejoinder.recipe.run import Outcome, Wait, pending, run_recipe
from rejoinder.verbs.results import Result

OnStart = Callable[[Step, int, int], None]
OnFinish = Callable[[Outcome, int, int], None]
"""Called with a step, or what became of it, its number, and the number of steps."""


def _nothing(step: Step, seconds: float, log: Path) -> None:
    """Report nothing about a step that is running."""


@dataclass(frozen=True)
class RunResult(Result):
    """The outcome of each step, and the recipe's table."""

    recipe: Recipe
    work: Path
    outcomes: list[Outcome]
    results: list[dict[str, Any]] | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "recipe": self.recipe.path,
            "work": str(self.work),
            "steps": [outcome.to_dict() for outcome in self.outcomes],
            "results": self.results,
        }


@dataclass(frozen=True)
class PlanResult(Result):
    """The steps of a recipe, and which of them a run would do."""

    recipe: Recipe
    work: Path
    pending: list[bool]

    def to_dict(self) -> dict[str, Any]:
        return {
            "recipe": self.recipe.path,
            "work": str(self.work),
            "steps": [
                {
                    "name": step.name,
                    "state": "to do" if pending else "done",
                    "run": list(step.arguments),
                    "inputs": list(step.inputs),
                    "outputs": list(step.outputs),
                }
                for step, pending in zip(self.recipe.steps, self.pending, strict=True)
            ],
        }


def run(
    recipe: str | os.PathLike[str],
    *,
    work: str | os.PathLike[str] | None = None,
    variables: Mapping[str, str] | None = None,
    dry_run: bool = False,
    on_start: OnStart = lambda step, number, total: None,
    on_finish: OnFinish = lambda outcome, number, total: None,
    on_wait: Wait = _nothing,
    show_messages: bool = False,
) -> RunResult | PlanResult:
    """Run the steps of a recipe and collect its table.

    A step is skipped if its outputs exist and its inputs are unchanged. All files go to
    ``work`` (the recipe's name + "-run" by default); ``variables`` change variables of the recipe;
    ``dry_run`` returns the steps and their state only.
    """
    path = os.fspath(recipe)
    folder = Path(f"{Path(path).stem}-run") if work is None else Path(work)
    parsed = read_recipe(path, folder, dict(variables or {}))
    if dry_run:
        return PlanResult(parsed, folder, pending(parsed, folder))
    outcomes = run_steps(
        parsed, folder, on_start, on_finish, on_wait=on_wait, show_messages=show_messages
    )
    results = None if parsed.table is None else _write_table(parsed.table)
    return RunResult(parsed, folder, outcomes, results)


def run_steps(
    recipe: Recipe,
    work: Path,
    on_start: OnStart,
    on_finish: OnFinish,
    *,
    on_wait: Wait = _nothing,
    show_messages: bool,
) -> list[Outcome]:
    """Run the steps of a recipe that are not done yet."""
    total = len(recipe.steps)
    return run_recipe(
        recipe,
        work,
        on_start=lambda step, number: on_start(step, number, total),
        on_finish=lambda outcome, number: on_finish(outcome, number, total),
        on_wait=on_wait,
        show_messages=show_messages,
    )


def _write_table(table: Table) -> list[dict[str, Any]]:
    results = collect(table)
    with open_output(table.output) as stream:
        payload = {"title": table.title, "results": results}
        stream.write(msgspec.json.format(msgspec.json.encode(payload), indent=2) + b"\n")
    return results
