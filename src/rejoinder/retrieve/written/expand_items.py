"""Expand a file of items with references that a language model writes.

Each context is asked about once, whatever the number of items that share it. The items are read
twice, as when references are retrieved, so that a long file needs little memory.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rejoinder.errors import DataError
from rejoinder.files.item_file import ItemFile, read_items
from rejoinder.files.jsonl import write_jsonl
from rejoinder.files.output import open_output
from rejoinder.items import Item
from rejoinder.llm.asking import Telling
from rejoinder.retrieve.expand_items import BATCH_ITEMS, batched, spool
from rejoinder.retrieve.index_folder import work_on
from rejoinder.retrieve.retrieved_references import (
    RateReferences,
    RetrievedReference,
    unrated,
    with_references,
)
from rejoinder.retrieve.written.writer import LlmWriter, Written
from rejoinder.text.identify import find_other_language, language_among, main_language
from rejoinder.wording import option

ALL_PRESENT = "all replies are references already"


@dataclass
class WritingReport:
    """Counts of the references that a language model wrote."""

    writer: str
    k: int
    items: int = 0
    contexts: int = 0
    """Distinct contexts."""
    written: int = 0
    """Replies that were written to them."""
    repeated: int = 0
    """Replies that were left out because they nearly repeat another one, or the context."""
    foreign: int = 0
    """Replies that were left out because they are in another language."""
    long: int = 0
    """Replies that were left out because they are longer than 1,000 characters."""
    references: int = 0
    """References added."""
    parrots: int = 0
    fewer: int = 0
    """Items with some, but fewer than k, new references."""
    requests: int = 0
    tokens: int = 0
    """Requests and tokens, also of answers that were in the cache."""
    unexpanded: dict[str, int] = field(default_factory=dict)
    """Items without new references, by reason."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def expand(
    items: str | ItemFile,
    writer: LlmWriter,
    output: Path,
    k: int,
    *,
    parrot: bool = False,
    rate: RateReferences = unrated,
    any_language: bool = False,
    telling: Telling | None = None,
    on_warning: Callable[[str], None] = lambda text: None,
) -> WritingReport:
    """Write the items with references that a language model wrote.

    ``rate`` gives the references their weights. A model folder whose card does not have the
    language of the items is refused, or with ``any_language`` reported to ``on_warning``.
    """
    telling = telling or Telling()
    with ExitStack() as stack:
        work, _ = stack.enter_context(work_on(output))
        source = items if isinstance(items, ItemFile) else ItemFile(items)
        if source.once:
            source.path = spool(source, work)
            stack.callback(Path(source.path).unlink)
        contexts = list(dict.fromkeys(tuple(item.context) for item in read_items(source)))
        turns = [turn for context in contexts for turn in context[-1:]]
        _check_language(writer, turns, source.name, any_language, on_warning)
        usual = main_language(turns)
        languages = [language_among(context, usual) for context in contexts]
        written, notes = writer.write(contexts, k, telling, languages)
        for note in notes:
            telling.note(f"{writer.name}: {note}")
        by_context = dict(zip(contexts, written, strict=True))
        in_one = {writer.in_language(language) for language in languages}
        report = _report(in_one.pop() if len(in_one) == 1 else writer, k, written)
        _write(output, source, by_context, writer, parrot, rate, report)
    shutil.rmtree(work, ignore_errors=True)
    return report


def _report(writer: LlmWriter, k: int, written: list[Written]) -> WritingReport:
    return WritingReport(
        str(writer),
        k,
        contexts=len(written),
        written=sum(len(each.texts) for each in written),
        repeated=sum(each.repeated for each in written),
        foreign=sum(each.foreign for each in written),
        long=sum(each.long for each in written),
        requests=sum(each.cost.requests for each in written),
        tokens=sum(each.cost.tokens for each in written),
    )


def _write(
    output: Path,
    source: ItemFile,
    by_context: dict[tuple[str, ...], Written],
    writer: LlmWriter,
    parrot: bool,
    rate: RateReferences,
    report: WritingReport,
) -> None:
    """Read the items again and write each with its new references."""
    unexpanded: Counter[str] = Counter()
    with open_output(output) as stream:
        for batch in batched(read_items(source), BATCH_ITEMS):
            new = []
            for item in batch:
                written = by_context[tuple(item.context)]
                references = _new_references(item, written, writer.source, parrot)
                new.append(references)
                count = sum(each.source is not None for each in references)
                report.items += 1
                report.references += count
                report.parrots += len(references) - count
                report.fewer += 0 < count < report.k
                if not count:
                    unexpanded[written.kind or ALL_PRESENT] += 1
            write_jsonl(stream, list(map(with_references, batch, rate(batch, new))))
    report.unexpanded = dict(unexpanded)


def _new_references(
    item: Item, written: Written, source: str, parrot: bool
) -> list[RetrievedReference]:
    """Return the written replies that an item does not have, and perhaps the parrot."""
    present = {reference.text for reference in item.references}
    new = [
        RetrievedReference(text, None, source=source)
        for text in written.texts
        if text not in present
    ]
    present |= {each.text for each in new}
    if new and parrot and item.context[-1].strip() and item.context[-1] not in present:
        new.append(RetrievedReference(item.context[-1], None))
    return new


def _check_language(
    writer: LlmWriter,
    turns: list[str],
    path: str,
    any_language: bool,
    on_warning: Callable[[str], None],
) -> None:
    """Raise DataError if a model folder does not know the language of the items."""
    if writer.url is not None or writer.model is None:
        return
    from rejoinder.llm.folder.loading import open_folder

    other = find_other_language(turns, open_folder(writer.model).languages)
    if other is None:
        return
    message = other.describe(f"the model {writer.model}")
    if not any_language:
        raise DataError(
            f"{message}; use a model for this language, or {option('any_language', True)}",
            path=path,
        )
    on_warning(f"{path}: {message}; its replies may be of little use")
