"""``rejoinder train dapt``: an encoder goes on learning on the dialogues at hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.common import JsonOption, print_json, say, seeded, show
from rejoinder.cli.train.progress import training_progress
from rejoinder.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from rejoinder.learn.dapt import Adapted


def dapt(
    pairs: Annotated[
        Path, typer.Argument(metavar="PAIRS", help="Parquet, as 'rejoinder corpus' writes it.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the encoder goes.")
    ],
    model: Annotated[
        str, typer.Option("--model", metavar="NAME", help="minilm, or a folder with a model.")
    ] = "minilm",
    steps: Annotated[
        int | None, typer.Option("--steps", metavar="N", min=1, help="Updates of the weights.")
    ] = None,
    epochs: Annotated[
        float | None,
        typer.Option("--epochs", metavar="X", help="Passes over the pairs instead; 1 by default."),
    ] = None,
    batch_tokens: Annotated[
        int, typer.Option("--batch-tokens", metavar="N", min=1, help="Tokens a batch, padded.")
    ] = 2048,
    accumulate: Annotated[
        int, typer.Option("--accumulate", metavar="N", min=1, help="Batches a step.")
    ] = 1,
    lr: Annotated[float, typer.Option("--lr", metavar="X", help="Highest learning rate.")] = 1e-4,
    mask: Annotated[
        float, typer.Option("--mask", metavar="X", help="Share of the tokens to hide.")
    ] = 0.15,
    whole_words: Annotated[
        bool, typer.Option("--whole-words", help="Hide all pieces of a word together.")
    ] = False,
    longest: Annotated[
        int, typer.Option("--longest", metavar="N", help="Tokens of a pair; the rest is cut.")
    ] = 128,
    sample: Annotated[
        int | None,
        typer.Option("--sample", metavar="N", min=1, help="Train on so many random pairs."),
    ] = None,
    validate_every: Annotated[
        int | None,
        typer.Option("--validate-every", metavar="N", min=1, help="Steps; an epoch by default."),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option("--patience", metavar="N", min=1, help="Stop after N without a new best."),
    ] = None,
    seed: Annotated[int, seeded("Seed of all chance.")] = 0,
    json: JsonOption = False,
) -> None:
    """Adapt an encoder to the domain of your dialogues by guessing hidden words in them.

    The new encoder is a folder that serves wherever a model is asked for.
    A run that was interrupted goes on where it stopped.
    """
    try:
        import safetensors  # noqa: F401
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as error:
        raise MissingExtra(
            f"training an encoder needs {error.name}: pip install torch transformers safetensors"
        ) from None
    from rejoinder.learn.dapt import Adaptation, adapt
    from rejoinder.learn.processes import is_first
    from rejoinder.learn.settings import Training

    if steps is not None and epochs is not None:
        raise UsageError("give either --steps or --epochs")
    settings = Adaptation(
        model=model,
        mask=mask,
        whole_words=whole_words,
        batch_tokens=batch_tokens,
        longest=longest,
        sample=sample,
        training=Training(
            steps=steps,
            epochs=1.0 if steps is None and epochs is None else epochs,
            rate=lr,
            accumulate=accumulate,
            validate_every=validate_every,
            patience=patience,
            seed=seed,
        ),
    )
    with training_progress("adapting") as tell:
        adapted = adapt(pairs, output, settings, tell)
    if not is_first():
        return
    if json:
        print_json({**adapted.manifest, "seconds": adapted.outcome.seconds})
        return
    show(_table(adapted))
    say(str(output))


def _table(adapted: Adapted) -> Table:
    from rejoinder.reporting.tables import plain_table

    data, result = adapted.manifest["data"], adapted.manifest["result"]
    table = plain_table("hidden tokens of held-out pairs", "perplexity", right=[1])
    rows = {
        "guessed by frequency alone": result["perplexity_unigram"],
        f"before ({result['head']} head)": result["perplexity_before"],
        f"after {result['best_step']:,} steps": result["perplexity_after"],
    }
    for name, value in rows.items():
        table.add_row(name, f"{value:,.1f}")
    table.add_row("pairs trained on", f"{data['train_taken']:,}")
    table.add_row("pairs held out", f"{data['validation_taken']:,}")
    table.add_row("minutes", f"{adapted.outcome.seconds / 60:,.1f}")
    return table
