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
    count_option,
    decimal,
    flag,
    output_file,
    output_folder,
    parse_columns,
    seed_option,
    whole,
)
from rejoinder.cli.terminal import print_json, say, show
from rejoinder.verbs.arguments import SEED

if TYPE_CHECKING:
    from rich.table import Table

    from rejoinder.learn.dapt import AdaptResult
    from rejoinder.verbs.train import SystemResult

app = typer.Typer(
    no_args_is_help=True,
    help="Train dialogue systems and word vectors, adapt an encoder, calibrate bertscore.",
)

ModelOption = Annotated[
    str, typer.Option("--model", metavar="NAME", help="minilm, or the folder of an encoder.")
]


@app.command("system")
def system(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NETWORK", help="dual-encoder, seq2seq, hred, vhred, cvae or transformer."
        ),
    ],
    pairs: PairsArgument,
    output: Annotated[Path, output_folder("Folder of the dialogue system.")],
    preset: Annotated[
        str, typer.Option("--preset", metavar="NAME", help="tiny, small, paper, or a TOML file.")
    ] = "small",
    language: Annotated[
        str, typer.Option("--language", "-l", metavar="xx", help="Language of the dialogues.")
    ] = "en",
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Change a setting of the preset: training.epochs=3"
        ),
    ] = None,
    seed: Annotated[int, seed_option(high=2**32 - 1)] = 0,
    json: JsonOption = False,
) -> None:
    """Train a dialogue system that replies to contexts: reply --system FOLDER.

    Its README.md has perplexity, lengths and diversity on held-out dialogues. An interrupted run
    continues where it stopped.
    """
    from rejoinder.learn.processes import NotMainProcess
    from rejoinder.verbs import train

    try:
        result = train.system(
            name,
            pairs,
            output=output,
            preset=preset,
            language=language,
            overrides=overrides,
            seed=seed,
            monitor=TerminalMonitor(),
        )
    except NotMainProcess:
        return
    if json:
        print_json(result)
        return
    show(_system_table(result))
    say(f"{output}: its README.md says what it can do; let it reply with --system {output}")


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
    dimensions: Annotated[int, count_option("--dimensions", "Vector length.", max=4096)] = 100,
    window: Annotated[
        int | None,
        count_option("--window", "Words on either side: 10 (GloVe) or 5.", max=1000),
    ] = None,
    min_count: Annotated[int, count_option("--min-count", "Rarer words get no vector.")] = 5,
    epochs: Annotated[
        int | None,
        count_option("--epochs", "Passes over the texts: 25 or 5.", max=10_000),
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
        count_option("--threads", "Threads; all cores.", max=1024),
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
    steps: Annotated[int | None, count_option("--steps", "Updates of the weights.")] = None,
    epochs: Annotated[
        float | None,
        typer.Option("--epochs", metavar="X", help="Passes over the pairs; 1 by default."),
    ] = None,
    batch_tokens: Annotated[
        int, count_option("--batch-tokens", "Tokens per batch, padded.")
    ] = 2048,
    accumulate: Annotated[int, count_option("--accumulate", "Batches per step.")] = 1,
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
        count_option("--max-pairs", "Train on at most N random pairs."),
    ] = None,
    validate_every: Annotated[
        int | None,
        count_option("--validate-every", "Steps between validations; default: one epoch."),
    ] = None,
    patience: Annotated[
        int | None,
        count_option("--patience", "Stop after N validations without a new best."),
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
    layer: Annotated[int, count_option("--layer", "Layer of the model.", min=0)] = 6,
    pairs: Annotated[
        int,
        count_option("--pairs", "Random pairs to compare.", max=10**6),
    ] = 5000,
    columns: ColumnsOption = None,
    seed: Annotated[int, seed_option()] = SEED,
    json: JsonOption = False,
) -> None:
    """Measure token frequencies and the similarity of random texts, for bertscore.

    Use it as 'bertscore(idf=true,rescale=true,calibration=FILE)'.
    """
    from rejoinder.verbs import train

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


def _system_table(result: SystemResult) -> Table:
    from rejoinder.reporting.tables import plain_table

    data, figures = result.manifest.data, result.manifest.result
    table = plain_table(result.manifest.network, "", right=[1])
    table.add_row("replies trained on", f"{data['replies']:,}")
    table.add_row("pairs held out", f"{data['validation_taken']:,}")
    table.add_row("weights", f"{figures['parameters']:,}")
    names = {
        "perplexity": "perplexity by word, held-out replies",
        "kl": "KL divergence by reply (nats)",
        "recall_at_1": "true reply first among those of its batch",
        "mean_length": "mean length of its replies (words)",
        "distinct_1": "distinct-1",
        "distinct_2": "distinct-2",
    }
    for key, title in names.items():
        if key in figures:
            table.add_row(
                title, f"{figures[key]:,.4f}" if figures[key] < 1 else f"{figures[key]:,.2f}"
            )
    table.add_row("minutes", f"{result.seconds / 60:,.1f}")
    return table


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
