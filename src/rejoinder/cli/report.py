"""``rejoinder report``: everything that is known about some replies, as one HTML page."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder.cli.common import (
    LanguageOption,
    OutputOption,
    ResamplesOption,
    SeedOption,
    check_output,
    naming,
    say,
)
from rejoinder.cli.evaluator import guard
from rejoinder.cli.progress import steps_progress
from rejoinder.errors import UsageError

if TYPE_CHECKING:
    from rejoinder.items import Item
    from rejoinder.meta_evaluation.curves import Point
    from rejoinder.reporting.page.findings import Evaluated

MOST_ITEMS, RESAMPLES, SEED = 2000, 1000, 12345


def report(
    items: Annotated[
        str, typer.Argument(metavar="ITEMS", help="Replies, with ratings or without, JSONL.")
    ],
    scores: Annotated[str, typer.Argument(metavar="SCORES", help="What 'score' wrote for them.")],
    output: OutputOption = None,
    evaluator: Annotated[
        str | None,
        typer.Option("--evaluator", metavar="DIR", help="Count the contexts that it has seen."),
    ] = None,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="The heading of the page.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            "-m",
            metavar="SPEC",
            help="What ranks systems; else the first ruber, or the last metric.",
        ),
    ] = None,
    most: Annotated[
        int, typer.Option("--items", metavar="N", min=1, help="Most items to browse in the page.")
    ] = MOST_ITEMS,
    curve: Annotated[
        str | None,
        typer.Option("--curve", metavar="FILE", help="What 'meta --curve --json' printed."),
    ] = None,
    language: LanguageOption = None,
    resamples: ResamplesOption = RESAMPLES,
    seed: SeedOption = SEED,
) -> None:
    """Write one HTML page: which system is better, how sure that is, and why.

    It opens offline, and has the ranking, agreement with people (where items
    have ratings), plots, and a table of items to browse.
    """
    from rejoinder.io import open_output, read_items, read_scores
    from rejoinder.meta_evaluation.study import Settings
    from rejoinder.registry import TOKENIZERS
    from rejoinder.reporting.page.build import Made
    from rejoinder.reporting.page.findings import find_out
    from rejoinder.reporting.page.material import gather
    from rejoinder.reporting.page.render import render
    from rejoinder.text.languages import language as known_language

    named = [name for name in (items, scores, curve) if name is not None]
    check_output(output, [*named, evaluator])
    if output is None and sys.stdout.isatty():
        raise UsageError("the page would fill the terminal: give -o report.html")
    if language is not None:
        known_language(language)  # a wrong one is said before any work
    options = {
        "--evaluator": evaluator,
        "--title": title,
        "--metric": metric,
        "--items": None if most == MOST_ITEMS else str(most),
        "--curve": curve,
        "--language": language,
        "--resamples": None if resamples == RESAMPLES else str(resamples),
        "--seed": str(seed),
        "-o": None if output is None else str(output),
    }
    with steps_progress() as step:
        step("reading")
        curves = {} if curve is None else _curves(curve)
        replies = list(read_items(items))
        material = gather(
            replies, read_scores(scores), metric=metric, items_name=items, scores_name=scores
        )
        evaluated = None if evaluator is None else _evaluated(evaluator, replies)
        spoken = language or (evaluated.language if evaluated else None) or "en"
        tokenizer = TOKENIZERS.make(known_language(spoken).tokenizer)
        systems = material.systems
        many = f"{len(systems):,} systems" if len(systems) > 1 else systems[0]
        made = Made(
            title or f"Replies of {many}",
            _command([items, scores], options),
            [(name, _digest(name)) for name in named],
        )
        settings = Settings(resamples, seed)
        with naming(items):
            found = find_out(material, settings, evaluated=evaluated, curves=curves, step=step)
        step("writing the page")
        page = render(found, made, tokenizer, most_items=most)
        with open_output(output) as stream:
            stream.write(page)
    where = "stdout" if output is None or str(output) == "-" else output
    say(f"report in {where} ({len(page) / 1e6:.2f} MB)")


def _command(arguments: list[str], options: dict[str, str | None]) -> str:
    """The command line that makes this page again."""
    given = [part for name, value in options.items() if value is not None for part in (name, value)]
    return shlex.join(["rejoinder", "report", *arguments, *given])


def _digest(name: str) -> str:
    """Of a file that can be read again, which stdin can't."""
    from rejoinder.io import JsonLines, file_digest

    return "a stream" if JsonLines(name).once else f"sha256 {file_digest(Path(name)).hex()}"


def _evaluated(folder: str, replies: list[Item]) -> Evaluated:
    """What the evaluator knows of these contexts."""
    from rejoinder.evaluator import open_evaluator
    from rejoinder.reporting.page.findings import Evaluated

    evaluator = open_evaluator(folder)
    seen = guard(replies, [evaluator], strict=False)[1]
    manifest = evaluator.manifest
    made_by = f"rejoinder {manifest.rejoinder}"
    made_by += f", preset {manifest.preset}" if manifest.preset else ""
    return Evaluated(
        evaluator.name,
        made_by,
        evaluator.digest,
        manifest.language,
        seen[str(evaluator)],
        manifest.coverage,
    )


def _curves(path: str) -> dict[str, list[Point]]:
    """The curves in the JSON of ``meta --curve``."""
    import msgspec

    from rejoinder.errors import DataError
    from rejoinder.io import explain
    from rejoinder.meta_evaluation.curves import Point

    try:
        read = msgspec.json.decode(Path(path).read_bytes(), type=dict[str, Any])
        found = msgspec.convert(read.get("curves", {}), dict[str, list[Point]])
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError(f"cannot be read: {reason}", path=path) from None
    except msgspec.DecodeError as error:
        raise DataError(
            f"{explain(str(error))}; expected what 'meta --curve --json' prints", path=path
        ) from None
    if not found:
        raise DataError("has no curves; make them with 'meta --curve --json'", path=path)
    return found
