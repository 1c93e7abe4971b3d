"""The words of a pool's texts, each with the rows it stands in: what BM25 and TF-IDF read.

The pool is cut into segments of rows. A segment lists its words with their rows, and is made,
kept and read as a whole; only how many rows have a word is counted over all of them. So neither
making nor asking the index needs memory for more than one segment and the vocabulary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.progress import Progress
from rejoinder.retrieve.base import Asked, Index, Ints, Mask, Queries
from rejoinder.text.tokenizers.base import starts_of
from rejoinder.text.tokens import Tokens

if TYPE_CHECKING:
    from rejoinder.kernels.postings import Part
    from rejoinder.kernels.topk import Best
    from rejoinder.retrieve.sparse import SparseRetriever

SEGMENT = 8
"""Batches of the pool in a segment: 131,072 rows."""

NOTHING_KNOWN = "no word of the {key} stands in the pool"

Floats = NDArray[np.float64]
Small = NDArray[np.int32]


@dataclass(frozen=True)
class Segment:
    """The words of some rows."""

    words: Small
    """Numbers of its distinct words, in order."""
    starts: Ints
    """words[i] stands in rows[starts[i]:starts[i + 1]]."""
    rows: Small
    """Counted from the segment's first row."""
    counts: Small
    lengths: Small
    """Words of each row."""

    @classmethod
    def of(cls, ids: list[Ints], lengths: list[Small]) -> Segment:
        sizes = np.concatenate(lengths)
        rows = np.repeat(np.arange(sizes.size), sizes)
        pairs, counts = np.unique(np.concatenate(ids) * sizes.size + rows, return_counts=True)
        words, firsts = np.unique(pairs // sizes.size, return_index=True)
        return cls(
            words.astype(np.int32),
            np.append(firsts, pairs.size).astype(np.int64),
            (pairs % sizes.size).astype(np.int32),
            counts.astype(np.int32),
            sizes,
        )


class _Totals(msgspec.Struct):
    """What a key of the whole pool has."""

    size: int
    tokens: int
    firsts: list[int]
    """The first row of each segment, and the number of all rows."""


def write_postings(
    batches: Iterator[list[str]],
    folder: Path,
    key: str,
    retriever: SparseRetriever,
    on_progress: Progress | None,
) -> int:
    """Index the texts of a key; returns how many have no word."""
    numbers: dict[str, int] = {}
    found: list[Ints] = []
    firsts, done, tokens, empty = [0], 0, 0, 0
    ids: list[Ints] = []
    lengths: list[Small] = []

    def finish() -> None:
        segment = Segment.of(ids, lengths)
        np.savez(
            folder / f"{key}-{len(firsts) - 1:05}.npz",
            words=segment.words,
            starts=segment.starts,
            rows=segment.rows,
            counts=segment.counts,
            lengths=segment.lengths,
        )
        found.append(np.stack([segment.words, np.diff(segment.starts)]))
        firsts.append(done)
        ids.clear()
        lengths.clear()

    for texts in batches:
        made = retriever.tokenizer.encode(retriever.cased(texts))
        own = np.array([numbers.setdefault(word, len(numbers)) for word in made.words], np.int64)
        sizes = np.diff(made.starts).astype(np.int32)
        ids.append(own[made.ids])
        lengths.append(sizes)
        done += len(texts)
        tokens += int(sizes.sum())
        empty += int((sizes == 0).sum())
        if len(ids) == SEGMENT:
            finish()
        if on_progress:
            on_progress(done, done)
    if ids:
        finish()
    rows_with = np.zeros(len(numbers), np.int64)
    for words, rows in found:
        rows_with[words] += rows
    np.save(folder / f"{key}-rows.npy", rows_with)
    # words are few, and short: JSON can hold any of them
    (folder / f"{key}-words.json").write_bytes(msgspec.json.encode(list(numbers)))
    (folder / f"{key}.json").write_bytes(msgspec.json.encode(_Totals(done, tokens, firsts)))
    return empty


class Postings:
    """The index of one key, read as needed."""

    def __init__(self, folder: Path, key: str, retriever: SparseRetriever) -> None:
        self._folder, self._key, self._retriever = folder, key, retriever
        totals = msgspec.json.decode((folder / f"{key}.json").read_bytes(), type=_Totals)
        self.size, self.tokens, self.firsts = totals.size, totals.tokens, totals.firsts
        self.rows_with: Ints = np.load(folder / f"{key}-rows.npy", allow_pickle=False)
        """How many rows have each word."""

    @cached_property
    def idf(self) -> Floats:
        return self._retriever.idf(self)

    @cached_property
    def numbers(self) -> dict[str, int]:
        words: list[str] = msgspec.json.decode(
            (self._folder / f"{self._key}-words.json").read_bytes()
        )
        return {word: number for number, word in enumerate(words)}

    def segment(self, number: int) -> Segment:
        with np.load(self._folder / f"{self._key}-{number:05}.npz", allow_pickle=False) as arrays:
            return Segment(**{name: arrays[name] for name in Segment.__annotations__})


class SparseIndex(Index):
    """Looks at every row that shares a word with a query."""

    def __init__(self, retriever: SparseRetriever, folder: Path, size: int) -> None:
        self.size = size
        self._retriever = retriever
        self._keys = {key: Postings(folder, key, retriever) for key in retriever.keys}
        self._firsts = next(iter(self._keys.values())).firsts
        self.step = max(self._firsts[1], 1)

    def ask(self, queries: Queries) -> Asked:
        reasons = queries.reasons(self._retriever.keys)
        found: dict[str, list[tuple[Ints, Floats]]] = {}
        for key, postings in self._keys.items():
            texts = self._retriever.cased(queries.texts(key))
            tokens = Tokens.of(self._retriever.tokenizer, texts)
            found[key] = [self._weights(tokens, i, postings) for i in range(len(queries))]
            for i, (words, weights) in enumerate(found[key]):
                if i not in reasons and i in tokens.problems:
                    reasons[i] = str(tokens.problems[i])
                elif i not in reasons and not (words.size and weights.any()):
                    reasons[i] = NOTHING_KNOWN.format(key=key)
        chosen = [i for i in range(len(queries)) if i not in reasons]
        arrays: dict[str, NDArray[np.generic]] = {}
        for key, weighed in found.items():
            some = [weighed[i] for i in chosen]
            arrays[f"{key}-starts"] = starts_of(len(words) for words, _ in some)
            # the empty arrays in front are for no query at all
            arrays[f"{key}-words"] = np.concatenate([np.zeros(0, np.int64), *(w for w, _ in some)])
            arrays[f"{key}-weights"] = np.concatenate([np.zeros(0), *(w for _, w in some)])
        return Asked(arrays, np.array(chosen, np.int64), reasons)

    def _weights(self, tokens: Tokens, text: int, postings: Postings) -> tuple[Ints, Floats]:
        """The distinct words of a query that the pool knows, in their order."""
        own = tokens.ids[tokens.starts[text] : tokens.starts[text + 1]].tolist()
        counts = Counter(postings.numbers.get(tokens.words[i], -1) for i in own)
        counts.pop(-1, None)
        words = np.fromiter(counts.keys(), np.int64, len(counts))
        times = np.fromiter(counts.values(), np.float64, len(counts))
        return words, self._retriever.query_weights(times, postings.idf[words])

    def scan(
        self,
        asked: Asked,
        rows: range,
        best: Best,
        *,
        skip: Mask | None,
        holds: Ints | None,
        on_progress: Progress | None = None,
    ) -> None:
        from rejoinder.kernels.postings import offer
        from rejoinder.kernels.topk import NO_NUMBERS, Threads

        with Threads() as threads:
            for number, first in enumerate(self._firsts[:-1]):
                last = self._firsts[number + 1]
                if first < rows.start or first >= rows.stop:
                    continue
                offer(
                    threads,
                    best,
                    [self._part(key, number, asked) for key in self._keys],
                    saturate=self._retriever.saturate,
                    first=first,
                    skip=np.zeros(last - first, np.bool_) if skip is None else skip[first:last],
                    holds=NO_NUMBERS if holds is None else np.asarray(holds[first:last]),
                )
                if on_progress:
                    on_progress(last - rows.start, len(rows))

    def _part(self, key: str, number: int, asked: Asked) -> Part:
        from rejoinder.kernels.postings import Part

        postings = self._keys[key]
        segment = postings.segment(number)
        words = asked.arrays[f"{key}-words"]
        places = np.searchsorted(segment.words, words)
        places[places == segment.words.size] = 0
        known = segment.words[places] == words if segment.words.size else np.zeros(len(words), bool)
        return Part(
            asked.arrays[f"{key}-starts"],
            np.where(known, places, -1),
            asked.arrays[f"{key}-weights"],
            segment.starts,
            segment.rows,
            segment.counts,
            self._retriever.norms(segment, postings),
        )
