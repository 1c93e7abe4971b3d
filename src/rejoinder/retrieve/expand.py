"""From a file of items with one reference, or none, to one with many, retrieved from a pool.

As Galley et al. (2015) and Tsuta et al. (2020) do it: the references that are there, then the
responses of the k most similar pairs, then the utterance itself, as a parrot would return it. A
text that an item has already is not added again; the next best takes its place.

The items are read twice: for what is to be looked up, each question once whatever the number of
items that ask it, and to be written with what was found. So a long file needs little memory.
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
from rejoinder.io import JsonLines, open_output, read_items, write_jsonl
from rejoinder.items import Item
from rejoinder.progress import Progress
from rejoinder.retrieve.base import Hits, Mask, Queries, Retriever, make_retriever
from rejoinder.retrieve.folder import resume, working
from rejoinder.retrieve.leaks import find_leaks
from rejoinder.retrieve.pool import Pool, open_pool
from rejoinder.retrieve.references import (
    STANDARD,
    Finder,
    Found,
    Questions,
    Settings,
    Weigh,
    unrated,
    with_references,
)

DEFAULT = "vectors"

Watch = Callable[[str], AbstractContextManager[Progress | None]]

AT_ONCE = 1000


@dataclass
class Account:
    """What was done, for people and for programs."""

    retriever: str
    pool: str
    pairs: int
    items: int = 0
    contexts: int = 0
    queries: int = 0
    """Distinct questions to the pool."""
    retrieved: int = 0
    """References added."""
    parrots: int = 0
    fewer: int = 0
    """Items with some, but fewer than k, retrieved references."""
    nearest: float | None = None
    """Mean similarity of the best retrieved reference of an item."""
    kth: float | None = None
    """Of the last one."""
    leaks: dict[str, int] = field(default_factory=dict)
    """Pairs left out because the test set has their utterance, word for word or nearly."""
    unexpanded: dict[str, int] = field(default_factory=dict)
    """Items without retrieved references, by reason."""
    unused: dict[str, int] = field(default_factory=dict)
    """Pairs of no use to this retriever, by reason."""

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def expand(
    items: str,
    pairs: str,
    output: Path,
    retriever: Retriever | None = None,
    settings: Settings = STANDARD,
    *,
    split: str | None = None,
    engine: str | None = None,
    weigh: Weigh = unrated,
    watch: Watch = lambda stage: nullcontext(),
) -> Account:
    """Write the items with what was found for them.

    ``pairs`` is a file, or an index, which has its own retriever. What is made of a file lies in a
    hidden folder beside the output until it is done: a run that was interrupted goes on there.
    ``weigh`` may rate what was found. ``watch`` gives, for the name of a stage, a callback that is
    told how far it is.
    """
    with ExitStack() as stack:
        work = stack.enter_context(working(output))
        source = JsonLines(items)
        if source.once:
            source.path = _spooled(source, work)
            stack.callback(Path(source.path).unlink)
        # what is wrong with the arguments or the items is found before the long work begins
        running = stack.enter_context(open_engine(engine, work / "engine")) if engine else None
        pool = stack.enter_context(open_pool(pairs)) if Path(pairs).is_dir() else None
        retriever = _chosen(pool, retriever, split)
        asked = Questions.of(read_items(source), retriever)
        if pool is None:
            pool = stack.enter_context(open_pool(pairs, split=split, work=work))
            resume(work, pool)
        leaks, counts = _leaks(pool, asked, settings, watch)
        with watch("indexing") as advance:
            pool.index(retriever, advance)
        k = min(asked.wanted(settings.k), pool.size)
        with watch("searching") as advance:
            hits = _search(running, pool, retriever, asked.queries, k, leaks, advance)
        account = Account(
            retriever=str(retriever),
            pool=pairs,
            pairs=pool.size,
            contexts=len(asked.contexts),
            queries=len(asked.utterances),
            leaks=counts,
            unused=pool.notes,
        )
        _write(output, source, Finder(pool, hits, settings), asked, weigh, account, settings.k)
    shutil.rmtree(work, ignore_errors=True)
    return account


def _write(
    output: Path,
    source: JsonLines,
    finder: Finder,
    asked: Questions,
    weigh: Weigh,
    account: Account,
    k: int,
) -> None:
    """The items once more, each with what was found for it."""
    counted = _Account(account, k)
    done = 0
    with open_output(output) as stream:
        for batch in _batched(read_items(source), AT_ONCE):
            numbers = asked.of_item[done : done + len(batch)].tolist()
            done += len(batch)
            found = finder.found(batch, numbers)
            for some, number in zip(found, numbers, strict=True):
                counted.add(some, partial(finder.reason, number))
            write_jsonl(stream, list(map(with_references, batch, weigh(batch, found))))
    counted.finish()


def _spooled(source: JsonLines, work: Path) -> str:
    """Items from a pipe, in a file: they are read twice."""
    path = work / "items.jsonl"
    with ExitStack() as stack, open(path, "wb") as file:
        shutil.copyfileobj(source.open_bytes(stack), file)
    return str(path)


def _chosen(pool: Pool | None, asked: Retriever | None, split: str | None) -> Retriever:
    """The retriever of an index, or the one that was asked for."""
    if pool is None:
        return asked or make_retriever(DEFAULT)
    if split is not None:
        raise UsageError(f"{pool.path} is an index, made of one split or of all: leave out --split")
    assert pool.retriever is not None
    if asked not in (None, pool.retriever):
        raise UsageError(
            f"{pool.path} is an index for {pool.retriever}, not for {asked};"
            " leave out --by, or name the pairs instead"
        )
    return pool.retriever


def _leaks(
    pool: Pool, asked: Questions, settings: Settings, watch: Watch
) -> tuple[Mask | None, dict[str, int]]:
    """The pairs whose utterance the test set has, and how many of each kind."""
    if settings.keep_leaks or not asked.last_turns:
        return None, {}
    with watch("looking for leaks") as advance:
        return find_leaks(pool, asked.last_turns, advance)


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


class _Account:
    """Counts what items get."""

    def __init__(self, account: Account, k: int) -> None:
        self._account, self._k = account, k
        self._nearest = self._kth = 0.0
        self._unexpanded: Counter[str] = Counter()

    def add(self, found: Sequence[Found], reason: Callable[[], str]) -> None:
        account = self._account
        account.items += 1
        retrieved = [each.similarity or 0.0 for each in found if each.row is not None]
        if not retrieved:
            self._unexpanded[reason()] += 1
            return
        account.retrieved += len(retrieved)
        account.fewer += len(retrieved) < self._k
        account.parrots += len(found) - len(retrieved)
        self._nearest += retrieved[0]
        self._kth += retrieved[-1]

    def finish(self) -> None:
        self._account.unexpanded = dict(self._unexpanded)
        expanded = self._account.items - self._unexpanded.total()
        if expanded:
            self._account.nearest = self._nearest / expanded
            self._account.kth = self._kth / expanded


def _batched(items: Iterator[Item], size: int) -> Iterator[list[Item]]:
    while batch := list(islice(items, size)):
        yield batch
