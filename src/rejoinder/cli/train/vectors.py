"""``rejoinder train vectors``: pairs in, a folder of word vectors out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli.common import JsonOption, print_json, say, seeded, whole
from rejoinder.cli.progress import pieces_progress
from rejoinder.machine import cores


def vectors(
    pairs: Annotated[
        list[str],
        typer.Argument(metavar="PAIRS…", help="Parquet of pairs, or plain text, a text a line."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the vectors go.")
    ],
    method: Annotated[
        str, typer.Option("--method", metavar="NAME", help="glove, word2vec or fasttext.")
    ] = "glove",
    dimensions: Annotated[
        int, typer.Option("--dimensions", metavar="N", min=1, max=4096, help="Of each vector.")
    ] = 100,
    window: Annotated[
        int | None,
        typer.Option(
            "--window", metavar="N", min=1, max=1000, help="Words on either side: 10 (GloVe) or 5."
        ),
    ] = None,
    min_count: Annotated[
        int, typer.Option("--min-count", metavar="N", min=1, help="Rarer words have no vector.")
    ] = 5,
    epochs: Annotated[
        int | None,
        typer.Option("--epochs", metavar="N", min=1, max=10_000, help="25 (GloVe) or 5."),
    ] = None,
    tok: Annotated[
        str | None, typer.Option("--tok", metavar="SPEC", help="Tokenizer; the language's own.")
    ] = None,
    lower: Annotated[bool, typer.Option("--lower/--no-lower", help="Lower case first.")] = True,
    language: Annotated[
        str, typer.Option("--language", "-l", metavar="xx", help="Of the texts (en, ja …).")
    ] = "en",
    x_max: Annotated[
        float,
        typer.Option(
            "--x-max", metavar="X", min=1e-6, max=1e9, help="GloVe: counts with full weight."
        ),
    ] = 10.0,
    buckets: Annotated[
        int,
        typer.Option(
            "--buckets", metavar="N", parser=whole(1, 2**31 - 1), help="fastText: of n-grams."
        ),
    ] = 200_000,
    seed: Annotated[int, seeded("Of all randomness.", 2**32 - 1)] = 0,
    threads: Annotated[
        int | None, typer.Option("--threads", metavar="N", min=1, max=1024, help="All by default.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Learn word vectors from pairs, for the metrics and retrievers that take vectors=FOLDER.

    GloVe gives the same vectors for the same seed, whatever the number of threads; word2vec and
    fastText only with --threads 1.
    """
    from rejoinder.encode.static.folder import check_target
    from rejoinder.encode.static.train.run import Settings, read_corpus, train_vectors
    from rejoinder.text.languages import language as language_of

    default = language_of(language).tokenizer
    settings = Settings(
        method=method,
        dimensions=dimensions,
        window=window,
        min_count=min_count,
        epochs=epochs,
        tok=tok or default,
        lower=lower,
        seed=seed,
        x_max=x_max,
        buckets=buckets,
    )
    settings = settings.completed()
    check_target(output)
    with pieces_progress("reading") as on_progress:
        corpus = read_corpus(pairs, settings, on_progress)
    with pieces_progress(method) as on_progress:
        account = train_vectors(
            corpus,
            output,
            settings,
            inputs=pairs,
            threads=threads or cores(),
            on_progress=on_progress,
        )
    if json:
        print_json(account)
        return
    say(
        f"{output}: {account['words']:,} words of {account['dimensions']} dimensions, from"
        f" {account['texts']:,} texts with {account['tokens']:,} tokens"
    )
    if account["texts_not_split"]:
        say(f"{account['texts_not_split']:,} texts could not be split and were left out")
