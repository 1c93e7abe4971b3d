"""``expand --by llm(…)``: references that a language model writes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rejoinder.errors import UsageError
from rejoinder.files import paths
from rejoinder.llm.asking import Telling
from rejoinder.registry import WRITERS
from rejoinder.retrieve.retrieved_references import RateReferences, unrated
from rejoinder.retrieve.written.expand_items import expand
from rejoinder.retrieve.written.prompts import PROMPTS
from rejoinder.retrieve.written.writer import DEFAULT_K, LlmWriter
from rejoinder.spec import Spec, parse
from rejoinder.verbs.monitor import Monitor

if TYPE_CHECKING:
    from rejoinder.files.item_file import ItemFile
    from rejoinder.verbs.expand import ExpandResult


def expand_written(
    items: ItemFile,
    output: Path,
    by: str,
    *,
    k: int | None,
    parrot: bool,
    evaluator: str | None,
    language: str | None,
    any_language: bool,
    monitor: Monitor,
) -> ExpandResult:
    """Add to each item of a file what a language model replies to its context."""
    from rejoinder.verbs.expand import ExpandResult

    spec = parse(by)
    if language in PROMPTS and "language" not in dict(spec.params):
        spec = Spec(spec.name, (*spec.params, ("language", str(language))))
    writer: LlmWriter = WRITERS.make(spec)
    if (missing := writer.missing_model(writer.name)) is not None:
        raise UsageError(f"{writer.name} {missing}")
    paths.check_place(output)
    paths.check_output(output, [items.path, evaluator])
    rate: RateReferences = unrated
    if evaluator is not None:
        from rejoinder.evaluator import open_evaluator
        from rejoinder.evaluator.rating import rate_references

        rate = partial(rate_references, open_evaluator(evaluator))
    number = DEFAULT_K if k is None else k
    with monitor.pieces("asking") as advance:
        report = expand(
            items,
            writer,
            output,
            number,
            parrot=parrot,
            rate=rate,
            any_language=any_language,
            telling=Telling(monitor.message, monitor.note, advance),
            on_warning=monitor.warn,
        )
    return ExpandResult(output, number, report)
