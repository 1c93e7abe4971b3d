"""Expand a file of items with references that are retrieved from a pool.

As Galley et al. (2015) and Tsuta et al. (2020) do it: the references of an item, then the
responses of the k most similar pairs, then the utterance itself (the parrot). A text that is a
reference already is not added again; the next best takes its place.

The items are read twice: once for their distinct queries, and once to be written with their new
references. So a long file needs little memory.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from rejoinder.engine import Engine, open_engine
from rejoinder.errors import UsageError
from rejoinder.files.item_file import ItemFile, read_items
from rejoinder.files.jsonl import write_jsonl
from rejoinder.files.output import open_output
from rejoinder.files.paths import is_folder
from rejoinder.items import Item
from rejoinder.progress import Progress
from rejoinder.retrieve.index_folder import discard_other_pairs, open_pool, work_on
from rejoinder.retrieve.language_check import OnWarning, check_language, check_pool_language
from rejoinder.retrieve.leaks import find_leaks
from rejoinder.retrieve.pool import Pool
from rejoinder.retrieve.retrieved_references import (
    DEFAULT_SETTINGS,
    ExpansionSettings,
    ItemQueries,
    RateReferences,
    ReferenceSelector,
    RetrievedReference,
    unrated,
    with_references,
)
from rejoinder.retrieve.retriever import Hits, Mask, Queries, Retriever, make_retriever
from rejoinder.wording import option

DEFAULT_RETRIEVER = "vectors"
BATCH_ITEMS = 1000

Watch = Callable[[str], AbstractContextManager[Progress | None]]


@dataclass
class ExpansionReport:
    """Counts of the references that an expansion added and left out."""

    retriever: str
    pool: str
    pairs: int
    items: int = 0
    contexts: int = 0
    queries: int = 0
    """Distinct queries."""
    retrieved: int = 0
    """References added."""
    parrots: int = 0
    fewer: int = 0
    """Items with some, but fewer than k, retrieved references."""
    nearest: float | None = None
    """Mean similarity of the best retrieved reference of an item."""
    kth: float | None = None
    """Mean similarity of the last one."""
    leaks: dict[str, int] = field(default_factory=dict)
    """Pairs left out because an item's last turn is their utterance, exactly or nearly."""
    unexpanded: dict[str, int] = field(default_factory=dict)
    """Items without retrieved references, by reason."""
    unused: dict[str, int] = field(default_factory=dict)
    """Pairs that the retriever cannot use, by reason."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def expand(
    items: str | ItemFile,
    pairs: str,
    output: Path,
    retriever: Retriever | None = None,
    settings: ExpansionSettings = DEFAULT_SETTINGS,
    *,
    split: str | None = None,
    engine: str | None = None,
    rate: RateReferences = unrated,
    any_language: bool = False,
    on_warning: OnWarning | None = None,
    watch: Watch = lambda stage: nullcontext(),
) -> ExpansionReport:
    """Write the items with retrieved references.

    ``pairs`` is a file, or an index, which has its own retriever. The index of a file is kept in a
    hidden folder beside the output until the run is done, so that an interrupted run resumes.
    ``rate`` gives the references their weights. Items or pairs in a language that the retriever's
    encoder does not know are refused, or with ``any_language`` reported to ``on_warning``.
    ``watch`` returns, for the name of a stage, a context manager with its progress callback.
    """
    with ExitStack() as stack:
        work, _ = stack.enter_context(work_on(output))
        source = items if isinstance(items, ItemFile) else ItemFile(items)
        if source.once:
            source.path = spool(source, work)
            stack.callback(Path(source.path).unlink)
        # wrong arguments and wrong items are reported before the long work begins
        running = stack.enter_context(open_engine(engine, work / "engine")) if engine else None
        pool = stack.enter_context(open_pool(pairs)) if is_folder(pairs) else None
        retriever = _choose_retriever(pool, retriever, split)
        queries = ItemQueries.of(read_items(source), retriever)
        check_language(retriever, list(queries.last_turns), source.name, any_language, on_warning)
        if pool is None:
            pool = stack.enter_context(open_pool(pairs, split=split, work=work))
            discard_other_pairs(work, pool)
            check_pool_language(pool, retriever, any_language, on_warning)
        leaks, counts = _find_leaks(pool, queries, settings, watch)
        with watch("indexing") as advance:
            pool.index(retriever, advance)
        k = min(queries.rows_to_search(settings.k), pool.size)
        with watch("searching") as advance:
            hits = _search(running, pool, retriever, queries.queries, k, leaks, advance)
        report = ExpansionReport(
            retriever=str(retriever),
            pool=pairs,
            pairs=pool.size,
            contexts=len(queries.contexts),
            queries=len(queries.utterances),
            leaks=counts,
            unused=pool.notes,
        )
        selector = ReferenceSelector(pool, hits, settings)
        _write(output, source, selector, queries, rate, report, settings.k)
    shutil.rmtree(work, ignore_errors=True)
    return report


def _write(
    output: Path,
    source: ItemFile,
    selector: ReferenceSelector,
    queries: ItemQueries,
    rate: RateReferences,
    report: ExpansionReport,
    k: int,
) -> None:
    """Read the items again and write each with its new references."""
    tally = _Tally(report, k)
    done = 0
    with open_output(output) as stream:
        for batch in batched(read_items(source), BATCH_ITEMS):
            numbers = queries.query_numbers[done : done + len(batch)].tolist()
            done += len(batch)
            retrieved = selector.select(batch, numbers)
            for some, number in zip(retrieved, numbers, strict=True):
                tally.add(some, partial(selector.reason, number))
            write_jsonl(stream, list(map(with_references, batch, rate(batch, retrieved))))
    tally.finish()


def spool(source: ItemFile, work: Path) -> str:
    """Copy items from a pipe into a file, which can be read twice."""
    path = work / "items.jsonl"
    with ExitStack() as stack, open(path, "wb") as file:
        shutil.copyfileobj(source.open_bytes(stack), file)
    return str(path)


def _choose_retriever(
    pool: Pool | None, requested: Retriever | None, split: str | None
) -> Retriever:
    """Return the retriever of an index, or the requested one."""
    if pool is None:
        return requested or make_retriever(DEFAULT_RETRIEVER)
    if split is not None:
        raise UsageError(
            f"{pool.path} is an index, made of one split or of all: leave out {option('split')}"
        )
    assert pool.retriever is not None
    if requested not in (None, pool.retriever):
        raise UsageError(
            f"{pool.path} is an index for {pool.retriever}, not for {requested};"
            f" leave out {option('by')}, or name the pairs instead"
        )
    return pool.retriever


def _find_leaks(
    pool: Pool, queries: ItemQueries, settings: ExpansionSettings, watch: Watch
) -> tuple[Mask | None, dict[str, int]]:
    """Return the pairs whose utterance is the last turn of an item, and how many of each kind."""
    if settings.keep_leaks or not queries.last_turns:
        return None, {}
    with watch("looking for leaks") as advance:
        return find_leaks(pool, queries.last_turns, advance)


def _search(
    engine: Engine | None,
    pool: Pool,
    retriever: Retriever,
    queries: Queries,
    k: int,
    leaks: Mask | None,
    advance: Progress | None,
) -> Hits:
    if engine is None:
        return pool.search(retriever, queries, k, exclude=leaks, distinct=True, on_progress=advance)
    from rejoinder.retrieve.distribute import search_on

    return search_on(
        engine, pool, retriever, queries, k, skip=leaks, distinct=True, on_progress=advance
    )


class _Tally:
    """Counts the references of all items."""

    def __init__(self, report: ExpansionReport, k: int) -> None:
        self._report, self._k = report, k
        self._nearest = self._kth = 0.0
        self._unexpanded: Counter[str] = Counter()

    def add(self, references: Sequence[RetrievedReference], reason: Callable[[], str]) -> None:
        report = self._report
        report.items += 1
        retrieved = [each.similarity or 0.0 for each in references if each.row is not None]
        if not retrieved:
            self._unexpanded[reason()] += 1
            return
        report.retrieved += len(retrieved)
        report.fewer += len(retrieved) < self._k
        report.parrots += len(references) - len(retrieved)
        self._nearest += retrieved[0]
        self._kth += retrieved[-1]

    def finish(self) -> None:
        self._report.unexpanded = dict(self._unexpanded)
        expanded = self._report.items - self._unexpanded.total()
        if expanded:
            self._report.nearest = self._nearest / expanded
            self._report.kth = self._kth / expanded


def batched(items: Iterator[Item], size: int) -> Iterator[list[Item]]:
    """Yield the items in lists of this size, the last one shorter."""
    while batch := list(islice(items, size)):
        yield batch
