"""``rejoinder corpus``: raw dialogue logs in, clean pairs out, and an account of the rest."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.common import JsonOption, check_output, check_place, print_json, say, show
from rejoinder.cli.progress import pieces_progress
from rejoinder.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from rejoinder.logs.pipeline import Settings


def corpus(
    logs: Annotated[
        list[str], typer.Argument(metavar="LOGS…", help="Files; .gz and .zst too; - is stdin.")
    ],
    format: Annotated[
        str, typer.Option("--format", "-f", metavar="NAME", help="See 'rejoinder ls'.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the pairs go (Parquet).")
    ],
    language: Annotated[
        str | None, typer.Option("--language", "-l", metavar="xx", help="en by default.")
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", metavar="NAME", help="duckdb, local[N] or spark://host:port.")
    ] = "duckdb",
    off: Annotated[
        list[str] | None, typer.Option("--off", metavar="FILTER", help="Switch a filter off.")
    ] = None,
    on: Annotated[
        list[str] | None, typer.Option("--on", metavar="FILTER", help="Switch one on (hashtags).")
    ] = None,
    context: Annotated[
        int, typer.Option("--context", metavar="N", min=0, max=50, help="Turns before it kept.")
    ] = 4,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", metavar="FILE", help="Leave out what this test set has."),
    ] = None,
    split: Annotated[
        str, typer.Option("--split", metavar="A,B,C", help="Shares of train, validation, test.")
    ] = "0.9,0.05,0.05",
    split_at: Annotated[
        list[str] | None,
        typer.Option("--split-at", metavar="DATE", help="Split by time instead, at these days."),
    ] = None,
    salt: Annotated[
        str | None,
        typer.Option("--salt", metavar="TEXT", envvar="REJOINDER_SALT", help="For the hashes."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="The first bad record is fatal.")
    ] = False,
    memory: Annotated[
        str, typer.Option("--memory", metavar="SIZE", help="What DuckDB may take, such as 2GB.")
    ] = "2GB",
    json: JsonOption = False,
) -> None:
    """Turn dialogue logs into clean, split pairs of utterance and response.

    Bad records are set aside in FILE's .rejects.jsonl, the account stands in its .manifest.json.
    A run that was interrupted goes on where it stopped.
    """
    try:
        import duckdb  # noqa: F401
        import pyarrow  # noqa: F401
    except ImportError:
        raise MissingExtra("logs need duckdb and pyarrow: pip install duckdb pyarrow") from None
    from rejoinder.logs.pipeline import beside, make_pairs

    settings = _settings(
        format, language, off or [], on or [], context, exclude or [], split, split_at or [], salt,
        strict,
    )  # fmt: skip
    check_place(output)
    check_output(output, [log for log in logs if Path(log).is_file()])
    with pieces_progress("reading") as advance:
        account = make_pairs(
            logs, output, settings, engine=engine, memory=memory, on_progress=advance
        )
    if json:
        print_json(account.plain())
        return
    from rejoinder.reporting.corpus import account_table, flow_table

    show(flow_table(account))
    show(account_table(account))
    say(f"{output}, {beside(output, 'manifest.json').name}")
    if (rejects := beside(output, "rejects.jsonl")).exists():
        say(f"bad records: {rejects}")


def _settings(
    format: str,
    language: str | None,
    off: list[str],
    on: list[str],
    context: int,
    exclude: list[str],
    split: str,
    split_at: list[str],
    salt: str | None,
    strict: bool,
) -> Settings:
    """All that is wrong with the arguments, at once."""
    from rejoinder.logs.clean import FILTERS, Cleaning
    from rejoinder.logs.pipeline import Settings
    from rejoinder.logs.sift import Sifting
    from rejoinder.logs.split import Split
    from rejoinder.logs.threads import Threads
    from rejoinder.registry import READERS
    from rejoinder.spec import did_you_mean

    problems: list[str] = []
    reader = cleaning = parts = None
    try:
        reader = READERS.make(format)
    except UsageError as error:
        problems += error.messages
    relational = [name for name in off if name in Sifting.names]
    unknown = [n for n in [*off, *on] if n not in FILTERS and n not in Sifting.names]
    problems += [
        f"unknown filter '{n}': {did_you_mean(n, [*FILTERS, *Sifting.names])}" for n in unknown
    ]
    if not unknown:
        try:
            plain_off = [name for name in off if name not in relational]
            cleaning = Cleaning.for_language(language or "en", off=plain_off, on=on)
        except UsageError as error:
            problems += error.messages
    try:
        dates = tuple(datetime.fromisoformat(date) for date in split_at)
        parts = Split(tuple(float(share) for share in split.split(",")), dates)
    except ValueError as error:
        problems.append(f"--split: {error}")
    problems += [f"{path}: cannot be read" for path in exclude if not Path(path).is_file()]
    if problems or reader is None or cleaning is None or parts is None:
        raise UsageError(*problems)
    return Settings(
        reader=reader,
        cleaning=cleaning,
        sifting=Sifting(off=tuple(relational)),
        threads=Threads(turns=context),
        split=parts,
        exclude=tuple(exclude),
        salt=salt,
        strict=strict,
    )
