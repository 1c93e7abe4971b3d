"""The inverted index of a pool's texts, which BM25 and TF-IDF read.

The pool is cut into segments of rows. A segment lists its words with the rows that contain them; it
is built, stored and read as a whole. Only document frequencies are counted over all segments. So
neither building nor searching needs memory for more than one segment and the vocabulary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.files.checked import check_values, read_array, read_json, read_npz
from rejoinder.progress import Progress
from rejoinder.retrieve.retriever import EncodedQueries, Index, Ints, Queries, SearchOptions
from rejoinder.text.tokenizers.tokenizer import starts_of
from rejoinder.text.tokens import Tokens

if TYPE_CHECKING:
    from rejoinder.kernels.postings import Part
    from rejoinder.kernels.topk import Best
    from rejoinder.retrieve.sparse import SparseRetriever

SEGMENT_BATCHES = 8
"""Batches of the pool in a segment: 131,072 rows."""
MAX_VOCABULARY_BYTES = 2**31

UNKNOWN_WORDS = "no word of the {key} occurs in the pool"

Floats = NDArray[np.float64]
Small = NDArray[np.int32]


@dataclass(frozen=True)
class Segment:
    """The words of some rows."""

    words: Small
    """The ids of its distinct words, in ascending order."""
    starts: Ints
    """words[i] occurs in rows[starts[i]:starts[i + 1]]."""
    rows: Small
    """Counted from the segment's first row."""
    counts: Small
    """How often the word occurs in the row."""
    lengths: Small
    """The number of words of each row."""

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

    @classmethod
    def read(cls, path: Path, size: int, vocabulary: int) -> Segment:
        """Read a segment of ``size`` rows; kernels rely on every number, so all are checked."""
        dtypes = dict.fromkeys(cls.__annotations__, "int32") | {"starts": "int64"}
        segment = cls(**read_npz(path, dtypes))
        if any(getattr(segment, name).ndim != 1 for name in dtypes):
            raise DataError("holds an array that is not one-dimensional", path=str(path))
        if len(segment.lengths) != size:
            raise DataError(f"has {len(segment.lengths)} rows; expected {size}", path=str(path))
        expected = len(segment.words) + 1, len(segment.rows), 0, len(segment.rows)
        starts = segment.starts
        if (
            (len(starts), len(segment.counts), *starts[:1].tolist(), *starts[-1:].tolist())
            != expected
            or (np.diff(starts) < 0).any()
            or (np.diff(segment.words) <= 0).any()
        ):
            raise DataError("the lists of its words do not fit together", path=str(path))
        check_values(path, segment.words, low=0, high=vocabulary - 1)
        check_values(path, segment.rows, low=0, high=size - 1)
        check_values(path, segment.counts, low=1)
        check_values(path, segment.lengths, low=0)
        return segment


Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class _Totals(msgspec.Struct):
    """Counts over all rows of one key."""

    size: Count
    tokens: Count
    firsts: list[Count]
    """The first row of each segment, then the number of all rows."""


def write_postings(
    batches: Iterator[list[str]],
    folder: Path,
    key: str,
    retriever: SparseRetriever,
    on_progress: Progress | None,
) -> int:
    """Index the texts of a key; return how many have no word."""
    vocabulary: dict[str, int] = {}
    frequencies: list[Ints] = []
    firsts, done, tokens, empty = [0], 0, 0, 0
    ids: list[Ints] = []
    lengths: list[Small] = []

    def finish_segment() -> None:
        segment = Segment.of(ids, lengths)
        np.savez(
            folder / f"{key}-{len(firsts) - 1:05}.npz",
            words=segment.words,
            starts=segment.starts,
            rows=segment.rows,
            counts=segment.counts,
            lengths=segment.lengths,
        )
        frequencies.append(np.stack([segment.words, np.diff(segment.starts)]))
        firsts.append(done)
        ids.clear()
        lengths.clear()

    for texts in batches:
        encoded = retriever.tokenizer.encode(retriever.apply_case(texts))
        word_ids = [vocabulary.setdefault(word, len(vocabulary)) for word in encoded.words]
        sizes = np.diff(encoded.starts).astype(np.int32)
        ids.append(np.array(word_ids, np.int64)[encoded.ids])
        lengths.append(sizes)
        done += len(texts)
        tokens += int(sizes.sum())
        empty += int((sizes == 0).sum())
        if len(ids) == SEGMENT_BATCHES:
            finish_segment()
        if on_progress:
            on_progress(done, done)
    if ids:
        finish_segment()
    document_frequency = np.zeros(len(vocabulary), np.int64)
    for words, rows in frequencies:
        document_frequency[words] += rows
    np.save(folder / f"{key}-rows.npy", document_frequency)
    (folder / f"{key}-words.json").write_bytes(msgspec.json.encode(list(vocabulary)))
    (folder / f"{key}.json").write_bytes(msgspec.json.encode(_Totals(done, tokens, firsts)))
    return empty


class Postings:
    """The inverted index of one key, read segment by segment."""

    def __init__(self, folder: Path, key: str, retriever: SparseRetriever, size: int) -> None:
        self._folder, self._key, self._retriever = folder, key, retriever
        path = folder / f"{key}.json"
        totals: _Totals = read_json(path, _Totals)
        firsts = totals.firsts
        if totals.size != size or firsts[:1] != [0] or firsts[-1] != size or len(firsts) < 2:
            raise DataError(f"its segments do not cover the {size} rows", path=str(path))
        if any(low >= high for low, high in pairwise(firsts)):
            raise DataError("its segments are not in order", path=str(path))
        self.size, self.tokens, self.firsts = totals.size, totals.tokens, firsts
        self.document_frequency: Ints = read_array(
            folder / f"{key}-rows.npy", dtype="int64", ndim=1, low=1, high=size
        )

    @cached_property
    def idf(self) -> Floats:
        return self._retriever.idf(self)

    @cached_property
    def word_ids(self) -> dict[str, int]:
        path = self._folder / f"{self._key}-words.json"
        words: list[str] = read_json(path, list[str], MAX_VOCABULARY_BYTES)
        if len(words) != len(self.document_frequency):
            raise DataError(
                f"lists {len(words)} words; expected {len(self.document_frequency)}", path=str(path)
            )
        return {word: number for number, word in enumerate(words)}

    def segment(self, number: int) -> Segment:
        path = self._folder / f"{self._key}-{number:05}.npz"
        size = self.firsts[number + 1] - self.firsts[number]
        return Segment.read(path, size, len(self.document_frequency))


class SparseIndex(Index):
    """Scores every row that shares a word with a query."""

    def __init__(self, retriever: SparseRetriever, folder: Path, size: int) -> None:
        self.size, self.path = size, folder
        self._retriever = retriever
        self._keys = {key: Postings(folder, key, retriever, size) for key in retriever.keys}
        self._firsts, *other_firsts = (postings.firsts for postings in self._keys.values())
        if any(firsts != self._firsts for firsts in other_firsts):
            raise DataError("the segments of utterances and responses differ", path=str(folder))
        self.step = max(self._firsts[1], 1)

    def encode_queries(self, queries: Queries) -> EncodedQueries:
        reasons = queries.missing_keys(self._retriever.keys)
        weighted: dict[str, list[tuple[Ints, Floats]]] = {}
        for key, postings in self._keys.items():
            texts = self._retriever.apply_case(queries.texts(key))
            tokens = Tokens.of(self._retriever.tokenizer, texts)
            weighted[key] = [self._weights(tokens, i, postings) for i in range(len(queries))]
            for i, (words, weights) in enumerate(weighted[key]):
                if i not in reasons and i in tokens.problems:
                    reasons[i] = str(tokens.problems[i])
                elif i not in reasons and not (words.size and weights.any()):
                    reasons[i] = UNKNOWN_WORDS.format(key=key)
        numbers = [i for i in range(len(queries)) if i not in reasons]
        arrays: dict[str, NDArray[np.generic]] = {}
        for key, pairs in weighted.items():
            some = [pairs[i] for i in numbers]
            arrays[f"{key}-starts"] = starts_of(len(words) for words, _ in some)
            # the empty arrays in front give a dtype when there is no query
            arrays[f"{key}-words"] = np.concatenate([np.zeros(0, np.int64), *(w for w, _ in some)])
            arrays[f"{key}-weights"] = np.concatenate([np.zeros(0), *(w for _, w in some)])
        return EncodedQueries(arrays, np.array(numbers, np.int64), reasons)

    def _weights(self, tokens: Tokens, text: int, postings: Postings) -> tuple[Ints, Floats]:
        """Return the distinct words of a query that occur in the pool, in order, with weights."""
        ids = tokens.ids[tokens.starts[text] : tokens.starts[text + 1]].tolist()
        counts = Counter(postings.word_ids.get(tokens.words[i], -1) for i in ids)
        counts.pop(-1, None)
        words = np.fromiter(counts.keys(), np.int64, len(counts))
        frequencies = np.fromiter(counts.values(), np.float64, len(counts))
        return words, self._retriever.query_weights(frequencies, postings.idf[words])

    def scan(
        self, queries: EncodedQueries, rows: range, best: Best, options: SearchOptions
    ) -> None:
        from rejoinder.kernels.postings import offer
        from rejoinder.kernels.topk import NO_NUMBERS, Threads

        skip, groups = options.skip, options.groups
        with Threads() as threads:
            for number, first in enumerate(self._firsts[:-1]):
                last = self._firsts[number + 1]
                if first < rows.start or first >= rows.stop:
                    continue
                offer(
                    threads,
                    best,
                    [self._part(key, number, queries) for key in self._keys],
                    saturate=self._retriever.saturate,
                    first=first,
                    skip=np.zeros(last - first, np.bool_) if skip is None else skip[first:last],
                    groups=NO_NUMBERS if groups is None else np.asarray(groups[first:last]),
                )
                if options.on_progress:
                    options.on_progress(last - rows.start, len(rows))

    def _part(self, key: str, number: int, queries: EncodedQueries) -> Part:
        from rejoinder.kernels.postings import Part

        postings = self._keys[key]
        segment = postings.segment(number)
        words = queries.arrays[f"{key}-words"]
        places = np.searchsorted(segment.words, words)
        places[places == segment.words.size] = 0
        empty = not segment.words.size
        occurs = np.zeros(len(words), bool) if empty else segment.words[places] == words
        return Part(
            queries.arrays[f"{key}-starts"],
            np.where(occurs, places, -1),
            queries.arrays[f"{key}-weights"],
            segment.starts,
            segment.rows,
            segment.counts,
            self._retriever.norms(segment, postings),
        )
