"""``rejoinder fit``: dialogue logs in, an evaluator out."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.common import JsonOption, print_json, say, seeded, show
from rejoinder.cli.progress import pieces_progress
from rejoinder.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from rejoinder.evaluator.manifest import Manifest
    from rejoinder.learn.progress import Progress


def fit(
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="PAIRS|LOGS…", help="Pairs (.parquet), or logs in one --format."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the evaluator goes.")
    ],
    format: Annotated[
        str | None, typer.Option("--format", "-f", metavar="NAME", help="Of logs; see 'ls'.")
    ] = None,
    preset: Annotated[
        str,
        typer.Option("--preset", metavar="NAME", help="tiny, small, paper, or a .toml of yours."),
    ] = "small",
    language: Annotated[
        str, typer.Option("--language", "-l", metavar="xx", help="Of the dialogues (en, ja …).")
    ] = "en",
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", metavar="FILE", help="Leave out what this test set has."),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change the preset: retrieval.k=15"),
    ] = None,
    seed: Annotated[int, seeded("Seed of all chance.", 2**32 - 1)] = 0,
    json: JsonOption = False,
) -> None:
    """Make an evaluator for the language and domain of your dialogue logs.

    It needs no ratings: it learns from what people replied. Give it to 'score',
    'compare', 'meta' and 'expand' as --evaluator FOLDER. A run that was
    interrupted goes on where it stopped.
    """
    # what is wrong with the arguments is said before torch is loaded, which takes a while
    from rejoinder.fitting.pairs import check_inputs
    from rejoinder.fitting.settings import read_settings

    settings = read_settings(preset, language, seed=seed, changes=change or [])
    if "-" in inputs:
        raise UsageError("fit reads its logs more than once: give files, not stdin")
    check_inputs(inputs, exclude or [], format)
    needed = ("torch", "safetensors", "pyarrow", "duckdb")
    if missing := [name for name in needed if importlib.util.find_spec(name) is None]:
        raise MissingExtra(f"fitting needs {', '.join(missing)}: pip install {' '.join(missing)}")
    import msgspec

    from rejoinder.fitting.fit import fit as run
    from rejoinder.fitting.run import Watch

    fitted = run(
        inputs,
        Path(str(output).rstrip("/")),
        settings,
        format=format,
        exclude=exclude or [],
        watch=Watch(pieces_progress, _training),
    )
    if fitted is None:  # with torchrun, the first process reports
        return
    for note in fitted.manifest.notes:
        say(f"note: {note}")
    if json:
        print_json(msgspec.to_builtins(fitted.manifest))
        return
    show(_table(fitted.manifest))
    size = sum(part.size for part in fitted.manifest.parts.values()) / 2**20
    say(f"{output}: {size:,.1f} MB; what it is worth and what not: README.md there")


@contextlib.contextmanager
def _training(what: str) -> Iterator[Callable[[Progress], None]]:
    from rejoinder.cli.train.progress import training_progress
    from rejoinder.learn.processes import is_first

    if is_first():
        say(f"training: {what}")
    with training_progress(what) as tell:
        yield tell


def _table(manifest: Manifest) -> Table:
    from rejoinder.reporting.tables import plain_table

    counts, leaks = manifest.data["counts"], manifest.data["leaks"]
    table = plain_table("evaluator", "", right=[1])
    table.add_row("pairs learnt from, and in the pool", f"{counts['train_taken']:,}")
    table.add_row("pairs held out", f"{counts['validation_taken']:,}")
    table.add_row("pairs left out as test material", f"{sum(leaks.values()):,}")
    several = counts["utterances_with_several_responses"]
    table.add_row("utterances with several responses", f"{several:,}")
    scorer, rater = (manifest.validation.get(name, {}) for name in ("unreferenced", "rater"))
    if "recall_at_1" in scorer:
        what = f"unreferenced: true reply first of {scorer['of']}"
        table.add_row(what, f"{scorer['recall_at_1']:.3f}")
        table.add_row("unreferenced: AUC against random replies", f"{scorer['auc']:.3f}")
    if "auc" in rater:
        table.add_row("rater: AUC against random replies", f"{rater['auc']:.3f}")
    return table
