"""``rejoinder corpus``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli.monitor import TerminalMonitor
from rejoinder.cli.options import (
    ExcludeOption,
    JsonOption,
    LanguageOption,
    LearnFromOption,
    count_option,
    flag,
    output_file,
)
from rejoinder.cli.terminal import print_json, say, show


def corpus(
    logs: Annotated[
        list[str], typer.Argument(metavar="LOGS", help="Files, also .gz and .zst; - is stdin.")
    ],
    format: Annotated[
        str, typer.Option("--format", "-f", metavar="NAME", help="Format of the logs; see 'ls'.")
    ],
    output: Annotated[Path, output_file("Output file of the pairs (Parquet).")],
    language: LanguageOption = None,
    engine: Annotated[
        str, typer.Option("--engine", metavar="NAME", help="duckdb, local[N] or spark://host:port.")
    ] = "duckdb",
    off: Annotated[
        list[str] | None, typer.Option("--off", metavar="FILTER", help="Switch a filter off.")
    ] = None,
    on: Annotated[
        list[str] | None,
        typer.Option("--on", metavar="FILTER", help="Switch a filter on (hashtags)."),
    ] = None,
    context: Annotated[
        int,
        count_option("--context", "Turns to keep before the utterance.", min=0, max=50),
    ] = 4,
    exclude: ExcludeOption = None,
    learn_from: LearnFromOption = None,
    split: Annotated[
        str, typer.Option("--split", metavar="A,B,C", help="Shares of train, validation, test.")
    ] = "0.9,0.05,0.05",
    split_at: Annotated[
        list[str] | None,
        typer.Option("--split-at", metavar="DATE", help="Split by time instead, at these dates."),
    ] = None,
    salt: Annotated[
        str | None,
        typer.Option(
            "--salt",
            metavar="TEXT",
            envvar="REJOINDER_SALT",
            help="Salt of the hashes of authors; random by default.",
        ),
    ] = None,
    strict: Annotated[bool, flag("--strict", "Stop at the first bad record.")] = False,
    memory: Annotated[
        str, typer.Option("--memory", metavar="SIZE", help="Memory limit of DuckDB.")
    ] = "2GB",
    json: JsonOption = False,
) -> None:
    """Turn dialogue logs into clean, split pairs of utterance and response.

    Bad records are written to FILE's .rejects.jsonl, with the reason; counts of everything that was
    removed to its .manifest.json. An interrupted run continues where it stopped.
    """
    from rejoinder.verbs.corpus import corpus as run

    result = run(
        logs,
        format=format,
        output=output,
        language=language,
        engine=engine,
        off=off or (),
        on=on or (),
        context=context,
        exclude=exclude or (),
        split=_shares(split),
        split_at=split_at or (),
        learn_from=learn_from,
        salt=salt,
        strict=strict,
        memory=memory,
        monitor=TerminalMonitor(),
    )
    if json:
        print_json(result)
        return
    from rejoinder.reporting.corpus_tables import account_table, flow_table

    show(flow_table(result.report))
    show(account_table(result.report))
    say(f"{output}, {result.manifest.name}")
    if result.rejects is not None:
        say(f"bad records: {result.rejects}")


def _shares(text: str) -> list[float]:
    from rejoinder.errors import UsageError

    try:
        return [float(share) for share in text.split(",")]
    except ValueError:
        raise UsageError(f"--split {text}: expected three numbers, such as 0.9,0.05,0.05") from None
