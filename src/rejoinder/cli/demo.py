"""``rejoinder demo``: the main verbs on a small set of replies, as anybody would type them."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli.common import say

METRICS = ("bleu(n=2)", "delta-bleu(n=2)", "rouge-l", "chrf")
TITLES = {
    "en": "English: three bots answer twelve contexts; three people rated the replies",
    "ja": "日本語: the same with Japanese replies, split into words by MeCab",
}


def demo(
    folder: Annotated[
        Path, typer.Option("--folder", metavar="DIR", help="Where the files go.")
    ] = Path("demo-output"),
) -> None:
    """Score and compare a small set of English and Japanese replies, and check against people."""
    from rejoinder.errors import UsageError

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be made: {(error.strerror or '').lower()}") from None
    for language, title in TITLES.items():
        items, scores = folder / f"replies-{language}.jsonl", folder / f"scores-{language}.jsonl"
        items.write_bytes(_example(language))
        asked = [part for metric in METRICS for part in ("-m", metric)]
        tongue = ["--language", language]
        say(f"\n── {title}")
        _type(["score", str(items), *asked, *tongue, "-o", str(scores)])
        _type(["compare", str(items), "-m", "delta-bleu(n=2)", *tongue])
        _type(["meta", str(items), str(scores)])
    say(f"\nThe files are in {folder}/. Read one: head -2 {folder}/scores-en.jsonl")


def _example(language: str) -> bytes:
    from importlib.resources import files

    return files("rejoinder").joinpath("examples", f"replies-{language}.jsonl").read_bytes()


def _type(arguments: list[str]) -> None:
    """Show a command line and run it."""
    from rejoinder.cli.main import run

    say(f"\n$ rejoinder {shlex.join(arguments)}")
    sys.stdout.flush()
    code = run(arguments)
    if code:
        raise typer.Exit(code)
