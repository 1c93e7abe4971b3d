"""From items with one reference, or none, to items with many: replies retrieved from a pool.

As Galley et al. (2015) and Tsuta et al. (2020) do it: the references that are there, then the
responses of the k most similar pairs, then the utterance itself, as a parrot would return it. A
text that an item has already is not added again; the next best takes its place.

The items are read twice: for what is to be looked up, each question once whatever the number of
items that ask it, and to be written with what was found. So a long file needs little memory.
"""

from __future__ import annotations

import shutil
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from rejoinder.engine import Engine, open_engine
from rejoinder.errors import UsageError
from rejoinder.io import JsonLines, open_output, open_stdin, read_items, write_jsonl
from rejoinder.items import Item, Reference
from rejoinder.retrieve.base import (
    RESPONSE,
    Hits,
    Mask,
    Progress,
    Queries,
    Retriever,
    make_retriever,
)
from rejoinder.retrieve.folder import resume, working
from rejoinder.retrieve.leaks import find_leaks
from rejoinder.retrieve.pool import Pool, open_pool

DEFAULT = "vectors"
RETRIEVED, PARROT = "retrieved", "parrot"
NOTHING_SIMILAR = "nothing in the pool is similar"
NOTHING_NEW = "what is similar stands there already"

Watch = Callable[[str], AbstractContextManager[Progress | None]]

AT_ONCE = 1000
DIGITS = 6
"""Of a similarity as it is written."""


@dataclass(frozen=True)
class Settings:
    """What is added to each item."""

    k: int = 15
    parrot: bool = True
    keep_leaks: bool = False
    """Also take pairs whose utterance is the last turn of an item."""


STANDARD = Settings()


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


@dataclass
class _Questions:
    """What the items ask: distinct queries, and which item asks which."""

    utterances: list[str] = field(default_factory=list)
    responses: list[str | None] = field(default_factory=list)
    of_item: array[int] = field(default_factory=lambda: array("q"))
    given: list[int] = field(default_factory=list)
    """How many distinct texts an item with this query has at most: so many more are looked for."""
    last_turns: dict[str, None] = field(default_factory=dict)
    contexts: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, items: Iterator[Item], retriever: Retriever) -> _Questions:
        asked = cls()
        numbers: dict[tuple[str, str | None], int] = {}
        compares = RESPONSE in retriever.keys
        for item in items:
            reply = item.references[0].text if compares and item.references else None
            key = retriever.key(item.context), reply
            number = numbers.setdefault(key, len(numbers))
            if number == len(asked.utterances):
                asked.utterances.append(key[0])
                asked.responses.append(reply)
                asked.given.append(0)
            texts = {reference.text for reference in item.references}
            asked.given[number] = max(asked.given[number], len(texts))
            asked.of_item.append(number)
            asked.contexts.add(item.group)
            if item.context:
                asked.last_turns.setdefault(item.context[-1])
        return asked


def expand(
    items: str,
    pairs: str,
    output: Path,
    retriever: Retriever | None = None,
    settings: Settings = STANDARD,
    *,
    split: str | None = None,
    engine: str | None = None,
    watch: Watch = lambda stage: nullcontext(),
) -> Account:
    """Write the items with what was found for them.

    ``pairs`` is a file, or an index, which has its own retriever. What is made of a file lies in a
    hidden folder beside the output until it is done: a run that was interrupted goes on there.
    ``watch`` gives, for the name of a stage, a callback that is told how far it is.
    """
    with ExitStack() as stack:
        work = stack.enter_context(working(output))
        source = JsonLines(items)
        if items == "-":
            source.path = _spooled(work)
            stack.callback(Path(source.path).unlink)
        # what is wrong with the arguments or the items is found before the long work begins
        running = stack.enter_context(open_engine(engine, work / "engine")) if engine else None
        pool = stack.enter_context(open_pool(pairs)) if Path(pairs).is_dir() else None
        retriever = _chosen(pool, retriever, split)
        asked = _Questions.of(read_items(source), retriever)
        if pool is None:
            pool = stack.enter_context(open_pool(pairs, split=split, work=work))
            resume(work, pool)
        leaks, counts = _leaks(pool, asked, settings, watch)
        with watch("indexing") as advance:
            pool.index(retriever, advance)
        queries = Queries(asked.utterances, asked.responses)
        # texts that an item has already take places
        k = min(settings.k + max(asked.given), pool.size)
        with watch("searching") as advance:
            hits = _search(running, pool, retriever, queries, k, leaks, advance)
        account = Account(
            retriever=str(retriever),
            pool=pairs,
            pairs=pool.size,
            contexts=len(asked.contexts),
            queries=len(queries),
            leaks=counts,
            unused=pool.notes,
        )
        with open_output(output) as stream:
            adding = _Adding(pool, hits, asked, settings, account)
            for batch in _batched(read_items(source), AT_ONCE):
                write_jsonl(stream, adding.to(batch))
        adding.finish()
    shutil.rmtree(work, ignore_errors=True)
    return account


def _spooled(work: Path) -> str:
    """Items from stdin, in a file: they are read twice."""
    path = work / "stdin.jsonl"
    with open(path, "wb") as file:
        shutil.copyfileobj(open_stdin(), file)
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
    pool: Pool, asked: _Questions, settings: Settings, watch: Watch
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


class _Adding:
    """Puts what was found into items, and keeps the account."""

    def __init__(
        self, pool: Pool, hits: Hits, asked: _Questions, settings: Settings, account: Account
    ) -> None:
        self._pool, self._hits, self._asked = pool, hits, asked
        self._settings, self._account = settings, account
        self._nearest = self._kth = 0.0
        self._unexpanded: Counter[str] = Counter()

    def to(self, items: Sequence[Item]) -> list[Item]:
        """The next items of the file, with their references."""
        first = self._account.items
        numbers = np.array(self._asked.of_item[first : first + len(items)], np.int64)
        self._account.items += len(items)
        found = self._hits.rows[numbers]
        rows = np.unique(found[found >= 0])
        texts = dict(zip(rows.tolist(), self._pool.responses(rows), strict=True))
        return [
            self._with(item, int(number), texts)
            for item, number in zip(items, numbers, strict=True)
        ]

    def _with(self, item: Item, number: int, texts: dict[int, str]) -> Item:
        have = {reference.text for reference in item.references}
        added: list[Reference] = []
        pairs = zip(self._hits.rows[number].tolist(), self._hits.scores[number], strict=True)
        for row, score in pairs:
            if row < 0 or len(added) == self._settings.k:
                break
            if texts[row] not in have:
                similarity = round(float(score), DIGITS)
                added.append(Reference(text=texts[row], source=RETRIEVED, score=similarity))
        if not added:
            self._unexpanded[self._reason(number)] += 1
            return item
        account = self._account
        account.retrieved += len(added)
        account.fewer += len(added) < self._settings.k
        self._nearest += added[0].score or 0.0
        self._kth += added[-1].score or 0.0
        have |= {reference.text for reference in added}
        utterance = item.context[-1] if item.context else ""
        if self._settings.parrot and utterance and utterance not in have:
            added.append(Reference(text=utterance, source=PARROT))
            account.parrots += 1
        return msgspec.structs.replace(item, references=[*item.references, *added])

    def _reason(self, number: int) -> str:
        if number in self._hits.reasons:
            return self._hits.reasons[number]
        return NOTHING_SIMILAR if self._hits.rows[number, 0] < 0 else NOTHING_NEW

    def finish(self) -> None:
        self._account.unexpanded = dict(self._unexpanded)
        expanded = self._account.items - self._unexpanded.total()
        if expanded:
            self._account.nearest = self._nearest / expanded
            self._account.kth = self._kth / expanded


def _batched(items: Iterator[Item], size: int) -> Iterator[list[Item]]:
    while batch := list(islice(items, size)):
        yield batch
