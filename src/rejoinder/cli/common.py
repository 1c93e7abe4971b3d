"""What the verbs share: the two streams, tables, JSON."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder.errors import DataError, UsageError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rejoinder.reporting.chart import Chart

WIDTH = 80


def whole(least: int, most: int) -> Callable[[str], int]:
    """Reads a number whose limits are too wide to stand in the help, which would have no column
    left for words."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise typer.BadParameter(f"'{text}' is not a whole number") from None
        if not least <= number <= most:
            raise typer.BadParameter(f"{number} is not in the range {least}<=x<={most}")
        return number

    return parse


def seeded(what: str, most: int = 2**63 - 1) -> Any:
    """``--seed``, with words on what it decides; some libraries take no large ones."""
    return typer.Option("--seed", metavar="N", parser=whole(0, most), help=what)


MetricsOption = Annotated[
    list[str],
    typer.Option("--metric", "-m", metavar="SPEC", help="A metric, such as 'bleu(n=2)'; repeat."),
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Where to write; stdout by default."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON on stdout instead of a table.")]
SvgOption = Annotated[
    Path | None, typer.Option("--svg", metavar="FILE", help="Draw the curve into a picture too.")
]
LanguageOption = Annotated[
    str | None,
    typer.Option(
        "--language", "-l", metavar="xx", help="Tokenizer and stemmer of this language (en, ja …)."
    ),
]
SeedOption = Annotated[int, seeded("Seed of the resampling.")]
ResamplesOption = Annotated[
    int,
    typer.Option(
        "--resamples", metavar="N", parser=whole(100, 1_000_000), help="Bootstrap resamples."
    ),
]


def console(*, stderr: bool = False) -> Console:
    """A console that never writes wider than a terminal window of 80 columns."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else WIDTH
    # names and texts come from data: brackets in them are brackets, not markup
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def harmless(message: str) -> str:
    """What may go to a terminal: names and texts come from data, and could clear its window."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in message
    )


def say(message: str) -> None:
    """A message to the person at the terminal: in lines of whole words there, in one elsewhere,
    where programs look for it. A long path or signature is never cut."""
    out = console(stderr=True)
    text = harmless(message)
    if out.is_terminal:
        import textwrap

        lines = textwrap.TextWrapper(out.width, break_long_words=False, break_on_hyphens=False)
        text = "\n".join(lines.fill(line) for line in text.split("\n"))
    out.print(text, soft_wrap=True)


def show(table: Table, *, stderr: bool = False) -> None:
    """Print a table below its title, which may be wider than the table itself."""
    out = console(stderr=stderr)
    title, table.title = table.title, None
    if title is not None:
        out.print(title)
    out.print(table)


def print_json(payload: Any) -> None:
    import msgspec

    # numpy's numbers are numbers too
    encoded = msgspec.json.encode(payload, enc_hook=lambda number: number.item())
    text = msgspec.json.format(encoded, indent=2)
    sys.stdout.buffer.write(text + b"\n")
    sys.stdout.buffer.flush()


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Put the file's name before a complaint about data that does not say where they stand."""
    try:
        yield
    except DataError as error:
        if error.path is not None:
            raise
        raise DataError(str(error), path=path) from None


def check_output(path: Path | None, inputs: Iterable[str | None]) -> None:
    """Refuse, before any work, an output that would overwrite an input, or a file in one that is
    a folder, such as an evaluator."""
    if path is None or str(path) == "-" or not path.exists():
        return
    for name in inputs:
        if name is None or name == "-" or not Path(name).exists():
            continue
        if path.samefile(name) or Path(name).resolve() in path.resolve().parents:
            raise UsageError(f"{path}: the output would overwrite the input; choose another name")


def check_place(path: Path) -> None:
    """Refuse, before any work, an output that has to be a file and can't be one."""
    if str(path) == "-":
        raise UsageError("-o -: this is not written to stdout; name a file")
    if path.is_dir():
        raise UsageError(f"{path}: cannot be written: it is a folder")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: cannot be written: there is no folder {path.parent}")


def not_shares(given: dict[str, float | None]) -> list[str]:
    wrong = {name: s for name, s in given.items() if s is not None and not 0 <= s <= 1}
    return [f"{name} must be from 0 to 1, got {value:g}" for name, value in wrong.items()]


def drawn_to_stdout(path: Path | None) -> list[str]:
    """What is wrong with a picture that would go where the table goes."""
    return ["--svg - would mix the picture with the table: name a file"] if str(path) == "-" else []


def draw(path: Path, chart: Chart) -> None:
    """Write a picture."""
    from rejoinder.io import open_output
    from rejoinder.reporting.chart import svg

    with open_output(path) as stream:
        stream.write(svg(chart).encode())
