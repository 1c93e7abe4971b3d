"""What the verbs share that ask an evaluator: the options, the guard, the words about coverage."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder.cli.common import say
from rejoinder.errors import DataError, UsageError

if TYPE_CHECKING:
    from rejoinder.evaluator import Evaluator
    from rejoinder.evaluator.coverage import Covered
    from rejoinder.evaluator.expand import Expansion
    from rejoinder.evaluator.seen import EvaluatedSet, Guarded
    from rejoinder.io import JsonLines
    from rejoinder.items import Item
    from rejoinder.metrics.request import Requests
    from rejoinder.metrics.sitting import Scored

EvaluatorOption = Annotated[
    str | None,
    typer.Option(
        "--evaluator", metavar="DIR", help="What 'rejoinder fit' made, for metrics that ask one."
    ),
]
StrictOption = Annotated[
    bool,
    typer.Option("--strict", help="Refuse contexts that were seen when the evaluator was made."),
]
SEEN = "while it was made (learnt from or held out)"


def check_strict(strict: bool, asked: bool) -> None:
    """Refuse a guard that has nothing to look for: whoever asks for it would feel safe."""
    if strict and not asked:
        raise UsageError(
            "--strict needs an evaluator, whose logs are looked through: add --evaluator DIR,"
            " or leave it out"
        )


def evaluators_of(asked: Requests, folder: str | None, *, strict: bool) -> list[Evaluator]:
    """Those that metrics ask, and the one that was named, each once; ``strict`` wants one."""
    found = [e for r in [*asked.items, *asked.sets] for e in r.metric.evaluators()]
    if folder is not None:
        from rejoinder.evaluator import open_evaluator

        found.append(open_evaluator(folder))
    check_strict(strict, bool(found))
    return list(dict.fromkeys(found))


def pool_in(path: str) -> str:
    """Where the pairs are: an evaluator has its own pool, whatever else it has."""
    from rejoinder.evaluator.manifest import MANIFEST, POOL

    if not (Path(path) / POOL / MANIFEST).is_file():
        return path
    from rejoinder.evaluator import open_evaluator

    return str(open_evaluator(path).path / POOL)


@contextmanager
def read_twice(source: JsonLines) -> Iterator[None]:
    """Let stdin, or another stream, be read more than once, from a file that is gone in the end."""
    if not _is_stream(source.path):
        yield
        return
    with tempfile.TemporaryDirectory(prefix="rejoinder-") as folder:
        # the ending tells how it is compressed
        path = Path(folder) / f"items{Path(source.path).suffix}"
        with ExitStack() as stack, open(path, "wb") as file:
            shutil.copyfileobj(source.open_bytes(stack), file)
        source.path = str(path)
        yield


def _is_stream(path: str) -> bool:
    """A pipe, for example: neither a file nor a folder, nor something that isn't there."""
    if path == "-":
        return True
    return os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))


def guard(
    items: Iterable[Item], evaluators: Sequence[Evaluator], *, strict: bool
) -> tuple[EvaluatedSet | None, dict[str, Guarded]]:
    """The contexts that are evaluated, and how many of them were seen while each evaluator was
    made: said, and refused if ``strict``."""
    if not evaluators:
        return None, {}
    from rejoinder.evaluator.seen import EvaluatedSet

    examined = EvaluatedSet.of(items)
    found = {str(evaluator): examined.guarded(evaluator) for evaluator in evaluators}
    for name, guarded in found.items():
        if guarded.seen and strict:
            raise DataError(
                f"{guarded} by {name} {SEEN}; leave them out of the items, or fit an evaluator"
                " with --exclude ITEMS, or leave out --strict"
            )
        warning = "warning: " if guarded.seen else ""
        say(f"{warning}{guarded} by {name} {SEEN}")
    return examined, found


def watched(
    batches: Iterable[tuple[list[Item], list[Scored]]], into: dict[str, Any]
) -> Iterator[tuple[list[Item], list[Scored]]]:
    """Pass batches through, noting for each evaluator how well it covers them."""
    from rejoinder.evaluator.coverage import Tally

    for items, results in batches:
        seen: dict[str, Expansion] = {}
        for result in results:
            if result.expansion is not None:
                seen.setdefault(str(result.expansion.evaluator), result.expansion)
        for name, expansion in seen.items():
            usual = expansion.evaluator.manifest.coverage
            into.setdefault(name, Tally(usual)).add(expansion.coverage)
        yield items, results


def say_coverage(name: str, covered: Covered) -> None:
    """One line, and another if the evaluator knows nothing of such contexts."""
    if covered.nearest is None:
        say(f"{name} covers none of the contexts")
        return
    parts = [f"nearest {covered.nearest:.3f}"]
    if covered.agreement is not None:
        parts.append(f"agreement {covered.agreement:.3f}")
    usual = "" if covered.usual is None else f"; usual in its own logs: {covered.usual:.3f}"
    say(f"coverage by {name}: {', '.join(parts)} (medians{usual})")
    if covered.outside:
        say(
            f"warning: these items lie outside the domain of {name}: half of their contexts are"
            f" farther from its logs than nine in ten of its own held-out contexts"
            f" ({covered.bound:.3f}); trust its scores less"
        )


def plain_coverage(tallies: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"evaluator": name, **asdict(t.covered())} for name, t in tallies.items()]


def plain_seen(guarded: dict[str, Guarded]) -> list[dict[str, Any]]:
    return [{"evaluator": name, **asdict(found)} for name, found in guarded.items()]
