"""``rejoinder train``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.monitor import TerminalMonitor
from rejoinder.cli.options import (
    ColumnsOption,
    JsonOption,
    LanguageOption,
    PairsArgument,
    decimal,
    flag,
    output_file,
    output_folder,
    seed_option,
    whole,
)
from rejoinder.cli.terminal import print_json, say, show
from rejoinder.verbs.arguments import SEED

if TYPE_CHECKING:
    from rich.table import Table

    from rejoinder.learn.dapt import AdaptResult

app = typer.Typer(
    no_args_is_help=True, help="Train word vectors, adapt an encoder, calibrate bertscore."
)

ModelOption = Annotated[
    str, typer.Option("--model", metavar="NAME", help="minilm, or the folder of an encoder.")
]


@app.command("vectors")
def vectors(
    pairs: Annotated[
        list[str],
        typer.Argument(metavar="PAIRS", help="Parquet of pairs, or plain text, a text per line."),
    ],
    output: Annotated[Path, output_folder("Folder of the vectors.")],
    method: Annotated[
        str, typer.Option("--method", metavar="NAME", help="glove, word2vec or fasttext.")
    ] = "glove",
    dimensions: Annotated[
        int, typer.Option("--dimensions", metavar="N", min=1, max=4096, help="Vector length.")
    ] = 100,
    window: Annotated[
        int | None,
        typer.Option(
            "--window", metavar="N", min=1, max=1000, help="Words on either side: 10 (GloVe) or 5."
        ),
    ] = None,
    min_count: Annotated[
        int, typer.Option("--min-count", metavar="N", min=1, help="Rarer words get no vector.")
    ] = 5,
    epochs: Annotated[
        int | None,
        typer.Option(
            "--epochs", metavar="N", min=1, max=10_000, help="Passes over the texts: 25 or 5."
        ),
    ] = None,
    tok: Annotated[
        str | None,
        typer.Option("--tok", metavar="SPEC", help="Tokenizer; by default the language's."),
    ] = None,
    lower: Annotated[
        bool, typer.Option("--lower/--no-lower", help="Convert the texts to lower case.")
    ] = True,
    language: LanguageOption = None,
    x_max: Annotated[
        float,
        typer.Option(
            "--x-max",
            metavar="X",
            parser=decimal(1e-6, 1e9),
            help="GloVe: counts from here on have full weight.",
        ),
    ] = 10.0,
    buckets: Annotated[
        int,
        typer.Option(
            "--buckets", metavar="N", parser=whole(1, 2**31 - 1), help="fastText: n-gram buckets."
        ),
    ] = 200_000,
    seed: Annotated[int, seed_option(high=2**32 - 1)] = 0,
    threads: Annotated[
        int | None,
        typer.Option("--threads", metavar="N", min=1, max=1024, help="Threads; all cores."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Train word vectors, for the metrics and retrievers that take vectors=FOLDER.

    GloVe gives the same vectors for the same seed, whatever the number of threads; word2vec and
    fastText only with --threads 1.
    """
    from rejoinder.verbs import train

    result = train.vectors(
        pairs,
        output=output,
        method=method,
        dimensions=dimensions,
        window=window,
        min_count=min_count,
        epochs=epochs,
        tok=tok,
        lower=lower,
        language=language,
        x_max=x_max,
        buckets=buckets,
        seed=seed,
        threads=threads,
        monitor=TerminalMonitor(),
    )
    if json:
        print_json(result)
        return
    report = result.report
    say(
        f"{output}: {report['words']:,} words of {report['dimensions']} dimensions, from"
        f" {report['texts']:,} texts with {report['tokens']:,} tokens"
    )
    if report["texts_not_split"]:
        say(f"{report['texts_not_split']:,} texts could not be tokenized and were left out")


@app.command("dapt")
def dapt(
    pairs: PairsArgument,
    output: Annotated[Path, output_folder("Folder of the encoder.")],
    model: ModelOption = "minilm",
    steps: Annotated[
        int | None, typer.Option("--steps", metavar="N", min=1, help="Updates of the weights.")
    ] = None,
    epochs: Annotated[
        float | None,
        typer.Option("--epochs", metavar="X", help="Passes over the pairs; 1 by default."),
    ] = None,
    batch_tokens: Annotated[
        int, typer.Option("--batch-tokens", metavar="N", min=1, help="Tokens per batch, padded.")
    ] = 2048,
    accumulate: Annotated[
        int, typer.Option("--accumulate", metavar="N", min=1, help="Batches per step.")
    ] = 1,
    learning_rate: Annotated[
        float, typer.Option("--learning-rate", metavar="X", help="Maximum learning rate.")
    ] = 1e-4,
    mask: Annotated[
        float, typer.Option("--mask", metavar="X", help="Share of the tokens to mask.")
    ] = 0.15,
    whole_words: Annotated[bool, flag("--whole-words", "Mask whole words.")] = False,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", metavar="N", help="Longer pairs are cut.")
    ] = 128,
    max_pairs: Annotated[
        int | None,
        typer.Option("--max-pairs", metavar="N", min=1, help="Train on at most N random pairs."),
    ] = None,
    validate_every: Annotated[
        int | None,
        typer.Option(
            "--validate-every",
            metavar="N",
            min=1,
            help="Steps between validations; default: one epoch.",
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            "--patience", metavar="N", min=1, help="Stop after N validations without a new best."
        ),
    ] = None,
    seed: Annotated[int, seed_option()] = 0,
    json: JsonOption = False,
) -> None:
    """Adapt an encoder to the domain of your dialogues by masked language modelling.

    The new encoder is a folder: metrics and retrievers take it as model=FOLDER. An interrupted run
    continues where it stopped.
    """
    from rejoinder.learn.processes import is_main_process
    from rejoinder.verbs import train

    result = train.dapt(
        pairs,
        output=output,
        model=model,
        steps=steps,
        epochs=epochs,
        batch_tokens=batch_tokens,
        gradient_accumulation_steps=accumulate,
        learning_rate=learning_rate,
        mask_probability=mask,
        whole_word_mask=whole_words,
        max_tokens=max_tokens,
        max_pairs=max_pairs,
        validate_every=validate_every,
        patience=patience,
        seed=seed,
        monitor=TerminalMonitor(),
    )
    if not is_main_process():
        return
    if json:
        print_json(result)
        return
    show(_dapt_table(result.adapted))
    say(str(output))


@app.command("calibration")
def calibration(
    texts: Annotated[
        str,
        typer.Argument(
            metavar="TEXTS",
            help="Items (their references), pairs (.parquet: responses), or a text per line.",
        ),
    ],
    output: Annotated[Path, output_file("Output file (JSON).")],
    model: ModelOption = "minilm",
    layer: Annotated[
        int, typer.Option("--layer", metavar="N", min=0, help="Layer of the model.")
    ] = 6,
    pairs: Annotated[
        int,
        typer.Option("--pairs", metavar="N", min=1, max=10**6, help="Random pairs to compare."),
    ] = 5000,
    columns: ColumnsOption = None,
    seed: Annotated[int, seed_option()] = SEED,
    json: JsonOption = False,
) -> None:
    """Measure token frequencies and the similarity of random texts, for bertscore.

    Use it as 'bertscore(idf=true,rescale=true,calibration=FILE)'.
    """
    from rejoinder.verbs import train
    from rejoinder.verbs.source import parse_columns

    result = train.calibration(
        texts,
        output=output,
        model=model,
        layer=layer,
        pairs=pairs,
        columns=parse_columns(columns),
        seed=seed,
        monitor=TerminalMonitor(),
    )
    if json:
        print_json(result)
        return
    measured = result.calibration
    p, r, f = measured.random_pairs
    say(f"{measured.texts:,} texts, {len(measured.counts):,} different tokens")
    say(f"random pairs: P {p:.4f}, R {r:.4f}, F {f:.4f} ({measured.pairs:,} pairs)")


def _dapt_table(adapted: AdaptResult) -> Table:
    from rejoinder.reporting.tables import plain_table

    data, result = adapted.manifest["data"], adapted.manifest["result"]
    table = plain_table("masked tokens of held-out pairs", "perplexity", right=[1])
    rows = {
        "by frequency alone": result["perplexity_unigram"],
        f"before ({result['head']} head)": result["perplexity_before"],
        f"after {result['best_step']:,} steps": result["perplexity_after"],
    }
    for name, value in rows.items():
        table.add_row(name, f"{value:,.1f}")
    table.add_row("pairs trained on", f"{data['train_taken']:,}")
    table.add_row("pairs held out", f"{data['validation_taken']:,}")
    table.add_row("minutes", f"{adapted.training.seconds / 60:,.1f}")
    return table
