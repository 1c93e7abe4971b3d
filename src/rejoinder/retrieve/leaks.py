"""Find the rows of a pool that a test set has: no reference or reply may come from them.

A row is a leak if its utterance is the last turn of a test context, exactly or nearly (see
:mod:`rejoinder.logs.contamination`). The same lookup over the column ``response`` finds replies
that are copied from the pool.

There are two ways to the same rows. :func:`find_leaks` reads the pool once for one test set and
keeps nothing of it, so a pool may be larger than memory. :class:`LeakIndex` reads the pool once,
keeps an inverted index of character 4-grams, and answers every further test set by lookup: in a
training loop each step is a small test set of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rejoinder.logs.contamination import (
    MIN_LENGTH,
    NGRAM,
    THRESHOLD,
    Fingerprint,
    codes,
    normalise,
)
from rejoinder.progress import Progress
from rejoinder.retrieve.retriever import UTTERANCE, Ints, Mask

if TYPE_CHECKING:
    from rejoinder.retrieve.pool import Pool


def find_leaks(
    pool: Pool,
    texts: Iterable[str],
    on_progress: Progress | None = None,
    *,
    column: str = UTTERANCE,
) -> tuple[Mask, dict[str, int]]:
    """Return the rows whose text is one of ``texts``, and how many match exactly and nearly."""
    fingerprint = Fingerprint.of(texts)
    mask = np.zeros(pool.size, np.bool_)
    counts: Counter[str] = Counter(exact=0, near=0)
    done = 0
    for batch in pool.batches([column]):
        for i, kind in enumerate(fingerprint.find(batch.column(0).to_pylist())):
            if kind is not None:
                mask[done + i] = True
                counts[kind] += 1
        done += batch.num_rows
        if on_progress:
            on_progress(done, pool.size)
    return mask, dict(counts)


@dataclass(frozen=True)
class PoolMatches:
    """The texts of a test set that a pool contains."""

    rows: Mask
    """Rows of the pool with one of the texts."""
    texts: dict[str, str]
    """Texts that the pool has: "exact" or "near"."""


def match_texts(
    pool: Pool,
    texts: Iterable[str],
    on_progress: Progress | None = None,
    *,
    column: str = UTTERANCE,
    also: Iterable[str] = (),
) -> PoolMatches:
    """Return which of ``texts`` occur in a column of the pool or in ``also``, and in which rows."""
    distinct = list(dict.fromkeys(texts))
    mask, _ = find_leaks(pool, distinct, on_progress, column=column)
    rows = np.flatnonzero(mask)
    pool_texts = [*pool.texts(column, rows), *also]
    kinds = Fingerprint.of(pool_texts).find(distinct) if pool_texts else []
    return PoolMatches(mask, {t: kind for t, kind in zip(distinct, kinds, strict=False) if kind})


class LeakIndex:
    """The texts of one column of a pool, indexed for repeated leak lookups."""

    def __init__(self, pool: Pool, column: str = UTTERANCE) -> None:
        from rejoinder.kernels.shingles import gram_sets

        texts: list[str] = []
        for batch in pool.batches([column]):
            texts += normalise(batch.column(0).to_pylist())
        self.size = len(texts)
        self._rows_of: dict[str, list[int]] = {}
        for row, text in enumerate(texts):
            if text:
                self._rows_of.setdefault(text, []).append(row)
        self._long = np.array([r for r, t in enumerate(texts) if len(t) >= MIN_LENGTH], np.int64)
        grams, self._starts = gram_sets(*codes([texts[row] for row in self._long.tolist()]), NGRAM)
        owners = np.repeat(np.arange(len(self._long), dtype=np.int32), np.diff(self._starts))
        self._grams = grams
        order = np.argsort(grams, kind="stable")
        self._owners = owners[order]
        self._keys, places = np.unique(grams[order], return_index=True)
        self._places = np.append(places, len(order))

    def find(self, texts: Iterable[str]) -> Mask:
        """Return a mask [rows of the pool] of those that :func:`find_leaks` would return."""
        from rejoinder.kernels.shingles import gram_sets

        mask: Mask = np.zeros(self.size, np.bool_)
        wanted = sorted(set(normalise(list(texts))) - {""})
        for text in wanted:
            mask[self._rows_of.get(text, [])] = True
        long = [text for text in wanted if len(text) >= MIN_LENGTH]
        if long and self._long.size:
            grams, starts = gram_sets(*codes(long), NGRAM)
            for first, last in pairwise(starts.tolist()):
                mask[self._long[self._near(grams[first:last])]] = True
        return mask

    def _near(self, grams: Ints) -> Ints:
        """Return the indexed texts whose Jaccard similarity to these n-grams is high enough."""
        slots = np.searchsorted(self._keys, grams)
        indexed = np.flatnonzero(self._keys[np.minimum(slots, len(self._keys) - 1)] == grams)
        slots = slots[indexed]
        frequency = self._places[slots + 1] - self._places[slots]
        # J >= t needs t·|x| shared grams, so one of any |x| - ceil(t·|x|) + 1 must be shared; grams
        # that the pool lacks come first among them, then the rarest
        prefix = len(indexed) - int(np.ceil(THRESHOLD * len(grams) - 1e-9)) + 1
        rarest = slots[np.argsort(frequency, kind="stable")[: max(0, prefix)]]
        owners = [self._owners[self._places[s] : self._places[s + 1]] for s in rarest.tolist()]
        candidates = np.unique(np.concatenate(owners)) if owners else np.zeros(0, np.int64)
        return np.array([c for c in candidates.tolist() if self._is_near(grams, c)], np.int64)

    def _is_near(self, grams: Ints, candidate: int) -> bool:
        candidate_grams = self._grams[self._starts[candidate] : self._starts[candidate + 1]]
        if min(len(grams), len(candidate_grams)) < THRESHOLD * max(
            len(grams), len(candidate_grams)
        ):
            return False
        shared = len(np.intersect1d(grams, candidate_grams, assume_unique=True))
        return shared / (len(grams) + len(candidate_grams) - shared) >= THRESHOLD
