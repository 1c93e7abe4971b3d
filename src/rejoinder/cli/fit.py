"""``rejoinder fit``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.monitor import TerminalMonitor
from rejoinder.cli.options import (
    AnyLanguageOption,
    ExcludeOption,
    JsonOption,
    LearnFromOption,
    output_folder,
    seed_option,
)
from rejoinder.cli.terminal import print_json, say, show

if TYPE_CHECKING:
    from rich.table import Table

    from rejoinder.evaluator.manifest import Manifest


def fit(
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="PAIRS|LOGS", help="Pairs (.parquet), or logs in one --format."),
    ],
    output: Annotated[Path, output_folder("Folder of the evaluator.")],
    format: Annotated[
        str | None,
        typer.Option("--format", "-f", metavar="NAME", help="Format of the logs; see 'ls'."),
    ] = None,
    preset: Annotated[
        str,
        typer.Option(
            "--preset", metavar="NAME", help="tiny, small, medium, paper, or a TOML file."
        ),
    ] = "small",
    language: Annotated[
        str,
        typer.Option(
            "--language", "-l", metavar="xx", help="Language of the dialogues, such as en or ja."
        ),
    ] = "en",
    exclude: ExcludeOption = None,
    learn_from: LearnFromOption = None,
    any_language: AnyLanguageOption = False,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Change a setting of the preset: retrieval.k=15"
        ),
    ] = None,
    seed: Annotated[int, seed_option(high=2**32 - 1)] = 0,
    json: JsonOption = False,
) -> None:
    """Make an evaluator for the language and domain of your dialogue logs.

    It needs no ratings: it learns from what people replied. Give it to 'score', 'compare', 'meta'
    and 'expand' as --evaluator FOLDER. An interrupted run continues where it stopped.
    """
    from rejoinder.learn.processes import NotMainProcess
    from rejoinder.verbs.fit import fit as run

    try:
        fitted = run(
            inputs,
            output=output,
            format=format,
            preset=preset,
            language=language,
            exclude=exclude,
            learn_from=learn_from,
            any_language=any_language,
            overrides=overrides,
            seed=seed,
            monitor=_FitMonitor(),
        )
    except NotMainProcess:
        return
    if json:
        print_json(fitted)
        return
    show(_table(fitted.manifest))
    size = sum(part.size for part in fitted.manifest.parts.values()) / 2**20
    say(f"{output}: {size:,.1f} MB; its README.md says how good it is and what it is not for")


class _FitMonitor(TerminalMonitor):
    """Mark notes: fitting prints much else."""

    def note(self, text: str) -> None:
        say(f"note: {text}")


def _table(manifest: Manifest) -> Table:
    from rejoinder.reporting.tables import plain_table

    counts, leaks = manifest.data["counts"], manifest.data["leaks"]
    table = plain_table("evaluator", "", right=[1])
    table.add_row("pairs in training data and pool", f"{counts['train_taken']:,}")
    table.add_row("pairs held out for validation", f"{counts['validation_taken']:,}")
    table.add_row("pairs left out as test material", f"{sum(leaks.values()):,}")
    several = counts["utterances_with_several_responses"]
    table.add_row("utterances with several responses", f"{several:,}")
    scorer, rater = (manifest.validation.get(name, {}) for name in ("unreferenced", "rater"))
    if "recall_at_1" in scorer:
        what = f"unreferenced: true reply first of {scorer['candidates']}"
        table.add_row(what, f"{scorer['recall_at_1']:.3f}")
        table.add_row("unreferenced: AUC against random replies", f"{scorer['auc']:.3f}")
    if "auc" in rater:
        table.add_row("rater: AUC against random replies", f"{rater['auc']:.3f}")
    return table
