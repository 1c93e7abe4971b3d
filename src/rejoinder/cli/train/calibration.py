"""``rejoinder train calibration``: what ``bertscore`` needs for ``idf`` and ``rescale``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.common import SeedOption, check_output, naming, say
from rejoinder.cli.progress import pieces_progress, progress
from rejoinder.logs.pairs_file import open_pairs

if TYPE_CHECKING:
    from rejoinder.io import JsonLines


def calibration(
    texts: Annotated[
        str,
        typer.Argument(
            metavar="TEXTS",
            help="Items (.jsonl: their references), pairs (.parquet: responses), or a text a line.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where it goes (JSON).")
    ],
    model: Annotated[
        str, typer.Option("--model", metavar="NAME", help="minilm, or the folder of an encoder.")
    ] = "minilm",
    layer: Annotated[int, typer.Option("--layer", metavar="N", min=0, help="Of the model.")] = 6,
    pairs: Annotated[
        int,
        typer.Option("--pairs", metavar="N", min=1, max=10**6, help="Random pairs to compare."),
    ] = 5000,
    seed: SeedOption = 12345,
) -> None:
    """Measure how rare tokens are and how alike random texts, for bertscore's idf and rescale.

    Use it as 'bertscore(idf=true,rescale=true,calibration=FILE)'.
    """
    import msgspec

    from rejoinder.io import JsonLines, open_output
    from rejoinder.metrics.base import make_metric
    from rejoinder.metrics.embedding.bertscore import BertScore
    from rejoinder.metrics.embedding.calibrate import calibrate, read_corpus
    from rejoinder.spec import Spec

    # a wrong model or layer is found before anything is read
    metric = make_metric(Spec("bertscore", (("model", model), ("layer", layer))))
    assert isinstance(metric, BertScore)
    check_output(output, [texts])
    source = JsonLines(texts)
    with naming(source.name):
        with progress("counting tokens", lambda: source.fraction) as advance:
            read = read_corpus(
                _texts(source), metric.encoder, most=2 * pairs, seed=seed, on_read=advance
            )
        with pieces_progress("comparing pairs") as on_progress:
            made = calibrate(read, metric, pairs=pairs, seed=seed, on_progress=on_progress)
    with open_output(output) as stream:
        stream.write(msgspec.json.encode(made) + b"\n")
    p, r, f = made.random_pairs
    say(f"{made.texts:,} texts, {len(made.counts):,} different tokens")
    say(f"random pairs: P {p:.4f}, R {r:.4f}, F {f:.4f} ({made.pairs:,} pairs)")


def _texts(source: JsonLines) -> Iterator[str]:
    """The texts of a file, whatever it is by its name."""
    plain = source.path.removesuffix(".gz").removesuffix(".zst")
    if plain.endswith(".parquet"):
        yield from _responses(source.path)
    elif plain.endswith(".jsonl"):
        from rejoinder.io import read_items

        for item in read_items(source):
            yield from (reference.text for reference in item.references)
    else:
        for number, line in source:
            try:
                yield line.decode()
            except UnicodeDecodeError:
                raise source.wrong(number, "the line is not UTF-8") from None


def _responses(path: str) -> Iterator[str]:
    with open_pairs(path, ["response"]) as file:
        for batch in file.iter_batches(columns=["response"]):
            yield from (text for text in batch.column("response").to_pylist() if text)
