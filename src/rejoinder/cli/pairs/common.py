"""What the verbs of ``rejoinder pairs`` share: their inputs, and how records are written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.progress import progress
from rejoinder.errors import DataError

if TYPE_CHECKING:
    from rejoinder.items import Item
    from rejoinder.pairwise.answers import Comparisons

CandidatesArgument = Annotated[
    str, typer.Argument(metavar="CANDIDATES", help="Items; those of one context are compared.")
]
AnswersArgument = Annotated[
    list[str], typer.Argument(metavar="ANSWERS…", help="JSONL: a, b, winner, annotator.")
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Refuse answers that contradict their annotator's others.")
]


def read_candidates(path: str) -> list[Item]:
    from rejoinder.io import read_items

    items = list(read_items(path))
    if len({item.group for item in items}) == len(items):
        raise DataError(
            "no two candidates reply to the same context, so there is nothing to compare;"
            " expected items that share a context_id, or the turns of their context",
            path=path,
        )
    return items


def read_comparisons(items: Sequence[Item], paths: Sequence[str], *, strict: bool) -> Comparisons:
    from rejoinder.io import JsonLines
    from rejoinder.pairwise.answers import read_answers

    sources = [JsonLines(path) for path in paths]

    def fraction() -> float | None:
        """Of the file that is being read."""
        return next((s.fraction for s in sources if s.fraction is not None), None)

    with progress("reading", fraction) as advance:
        return read_answers(items, sources, strict=strict, on_progress=advance)


def stdin_twice(paths: Sequence[str]) -> list[str]:
    return ["only one input can be - (stdin)"] if list(paths).count("-") > 1 else []


def to_stdout(output: Path | None) -> bool:
    return output is None or str(output) == "-"
